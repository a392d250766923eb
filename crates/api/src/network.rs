//! Schemas of addresses, in the words of JSON Schema.

use schemars::{Schema, SchemaGenerator, json_schema};

/// An IP address of either version that may be absent.
pub(crate) fn ip_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "format": "ipv4" },
            { "type": "string", "format": "ipv6" },
            { "type": "null" },
        ],
    })
}

/// An IP address or a network that may be absent.
pub(crate) fn network_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "format": "ipv4" },
            { "type": "string", "format": "ipv6" },
            { "type": "string", "pattern": "^[0-9A-Fa-f.:]+/[0-9]+$" },
            { "type": "null" },
        ],
    })
}
