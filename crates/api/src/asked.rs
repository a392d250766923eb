//! The request to explain.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::ip_or_null;

/// Maximum size of the body of an explained request.
pub const BODY_BYTES_MAX: usize = 128 * 1024;

/// A supposed request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The URL: `https://shop.example/cart?id=1`.
    pub url: String,
    /// The method; `None`: GET, or POST with a body.
    #[serde(default)]
    pub method: Option<String>,
    /// The fields: `Name: value`.
    #[serde(default)]
    pub headers: Vec<String>,
    /// The body.
    #[serde(default)]
    pub body: Option<String>,
    /// The client's address; `None`: this host.
    #[serde(default)]
    #[schemars(schema_with = "ip_or_null")]
    pub from: Option<IpAddr>,
    /// Whether the request uses HTTP/2.
    #[serde(default)]
    pub http2: bool,
    /// The virtual server that receives it; `None`: chosen by the URL.
    #[serde(default)]
    pub virtual_server: Option<String>,
}
