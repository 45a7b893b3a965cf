"""HTTP as the services with HTTP of their own serve it: bounded in every direction before anybody has shown a token."""
