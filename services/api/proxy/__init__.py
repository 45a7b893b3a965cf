"""The way into tasks: HTTP, websockets and TCP to the ports that tasks listen on, for those who may."""
