"""Storage Spaces Direct on Windows nodes: one PowerShell script a step, JSON in and JSON out.

Nothing here has run on Windows. The scripts are written from Microsoft's documentation and parsed by a
grammar of PowerShell; their cmdlets, parameter sets and mandatory parameters are compared with a table made
from the same pages (`tests/clusters/powershell/cmdlets.csv`). What the cmdlets then do is unverified.
"""
