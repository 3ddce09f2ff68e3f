"""The reference pages of scenario keys, columns and profiles are what models, schema and files say."""

from __future__ import annotations

from checks import reference_pages


def test_every_key_and_column_has_a_meaning_and_no_other() -> None:
    texts = reference_pages.meanings()
    records = reference_pages.records()
    assert {name: set(record.model_fields) for name, (record, _) in records.items()} == {
        name: set(keys) for name, keys in texts["keys"].items()
    }
    tables = reference_pages.tables()
    assert {table.name for table in tables} == set(texts["tables"])
    assert {column.name for table in tables for column in table.columns} == set(texts["columns"])
