"""The public interface: what `import diskbook` offers to notebooks and programs."""
