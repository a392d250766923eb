//! The whole status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::DatedFile;
use crate::packet_path::PacketPath;
use crate::pool::Pool;
use crate::process::Process;
use crate::virtual_server::{Disabled, VirtualServer};

/// The whole status.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// The files of the configuration with contents that expire, except certificates for clients.
    #[serde(default)]
    pub files: Vec<DatedFile>,
    /// The virtual servers, in the order of the configuration.
    pub virtual_servers: Vec<VirtualServer>,
    /// The virtual servers that the configuration disables.
    #[serde(default)]
    pub disabled_virtual_servers: Vec<Disabled>,
    /// The packet path and the virtual servers of type fast_l4; `null`: there are none.
    pub packet_path: Option<PacketPath>,
    /// The pools, in the order of the configuration.
    pub pools: Vec<Pool>,
}
