//! TLS without I/O.
//!
//! [`client_hello::peek`] reads the server name that a client requests. [`Session`] converts between network bytes and
//! plaintext. rustls performs the handshakes. Records are encrypted and decrypted in this crate, in place.
//!
//! **Architecture invariant:** no sockets and no unsafe code. A session depends only on its input bytes and, during a
//! handshake, on the clock and the random numbers of rustls.
#![forbid(unsafe_code)]

pub mod certificate;
pub mod challenges;
pub mod client;
pub mod client_hello;
mod der;
mod error;
pub mod identity;
pub mod managed_certificate;
pub mod names;
pub mod ocsp;
mod open;
pub mod pem;
pub mod period;
mod protection;
mod protocol;
mod record;
mod record_buffer;
pub mod server;
mod session;
pub mod session_cache;
mod step;
pub mod tickets;
mod words;

pub use error::{Alert, TlsError};
pub use protection::OVERHEAD_BYTES_MAX;
pub use protocol::Protocol;
pub use record::PLAINTEXT_BYTES_MAX;
pub use record_buffer::RecordBuffer;
pub use rustls::pki_types::{CertificateDer, ServerName};
pub use rustls::{
    ClientConfig, KeyLog, ProtocolVersion, ServerConfig, SignatureAlgorithm, SupportedCipherSuite,
};
pub use session::{HandshakeResult, Session};
pub use step::Step;
pub use words::explain;
