"""The client side of Azure: sign in, create, read back, attach, monitor, recover, tear down."""
