"""Start of the api: what handlers use, the application in front of them, and the server in front of that."""
