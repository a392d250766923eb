//! The connection of a probe.

use tokio::io::{AsyncRead, AsyncWrite};

/// The connection of a probe.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection to a member, with or without TLS.
pub(crate) type Connection = Box<dyn Stream>;
