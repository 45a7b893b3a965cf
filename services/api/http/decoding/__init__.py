"""From the bytes of a request to typed values: bodies, query strings, and what protobuf's JSON allows in both."""
