//! TLS without I/O.
//!
//! [`client_hello::peek`] reads the server name that a connection asks for, [`Session`] turns bytes of the network into
//! plaintext and back. rustls does the handshakes; records are encrypted and decrypted here, in place.
//!
//! **Architecture invariant:** no socket and no unsafe. A session depends only on its input bytes and, in a handshake,
//! on the clock and the random numbers of rustls.
#![forbid(unsafe_code)]

pub mod certificate;
pub mod client;
pub mod client_hello;
mod der;
mod error;
pub mod identity;
pub mod names;
pub mod ocsp;
mod open;
mod protection;
mod protocol;
mod record;
mod sealed;
pub mod server;
mod session;
pub mod session_cache;
mod step;
pub mod tickets;

pub use error::{Alert, TlsError, explain};
pub use protection::OVERHEAD_BYTES_MAX;
pub use protocol::Protocol;
pub use record::PLAINTEXT_BYTES_MAX;
pub use rustls::pki_types::{CertificateDer, ServerName};
pub use rustls::{ClientConfig, KeyLog, ProtocolVersion, ServerConfig, SupportedCipherSuite};
pub use sealed::Sealed;
pub use session::{Established, Session};
pub use step::Step;
