#!/bin/sh
# Stands in for the Azure CLI: signs in to an emulator.
cd "$(dirname "$0")" || exit 1
case "$*" in
    login) mkdir -p "$AZURE_CONFIG_DIR" && tee "$AZURE_CONFIG_DIR/azureProfile.json" <subscriptions.json ;;
    "account get-access-token "*)
        if [ -e "$AZURE_CONFIG_DIR/azureProfile.json" ]; then exec cat token.json; fi
        echo "Please run 'az login' to setup account." >&2; exit 1 ;;
    *) echo "the rehearsal's stand-in for az does not know: az $*" >&2; exit 2 ;;
esac
