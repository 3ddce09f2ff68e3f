"""ARM ids and paths: case does not matter in them."""

_KEYWORDS = """
subscriptions resourceGroups providers locations resources operations operationResults DiskOperations
Microsoft.Compute Microsoft.Network Microsoft.Resources Microsoft.DevTestLab Microsoft.Storage
Microsoft.Authorization permissions register
disks virtualMachines skus usages attachDetachDataDisks start deallocate powerOff restart instanceView
virtualNetworks subnets publicIPAddresses networkSecurityGroups securityRules networkInterfaces schedules
bastionHosts Microsoft.PolicyInsights checkPolicyRestrictions
extensions storageAccounts listKeys asyncoperations
"""
_CANONICAL = {word.lower(): word for word in _KEYWORDS.split()}


def canonical(path: str) -> str:
    """Bring the fixed segments of a path into Azure's spelling; names keep theirs.

    Names stand at every second place: subscriptions/{id}/resourceGroups/{name}/providers/{namespace}/...
    """
    parts = path.split("/")
    for index in range(1, len(parts)):
        namespace = parts[index - 1].lower() == "providers"
        if index % 2 == 1 or namespace:
            parts[index] = _CANONICAL.get(parts[index].lower(), parts[index])
    return "/".join(parts)


def key(resource_id: str) -> str:
    """Turn an id into the form that ids are compared in."""
    return resource_id.rstrip("/").lower()


def name_of(resource_id: str) -> str:
    return resource_id.rstrip("/").rsplit("/", 1)[-1]


def group_of(resource_id: str) -> str:
    """Name of the resource group in an id, "" where there is none."""
    parts = resource_id.split("/")
    lowered = [part.lower() for part in parts]
    return parts[lowered.index("resourcegroups") + 1] if "resourcegroups" in lowered else ""
