//! A connection that notes whether all data for its client was handed to the system.
//!
//! The HTTP library drops the body of an answer as soon as its own buffer has the last part. So the end of a body does not
//! mean that the answer was sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::Place;

/// A connection and its place.
pub(super) struct PlacedConnection<S> {
    stream: S,
    place: Arc<Place>,
    is_unsent: bool,
}

impl<S> PlacedConnection<S> {
    pub(super) fn new(stream: S, place: Arc<Place>) -> Self {
        Self { stream, place, is_unsent: false }
    }

    fn note(&mut self, is_unsent: bool) {
        if self.is_unsent != is_unsent {
            self.is_unsent = is_unsent;
            self.place.note_unsent(is_unsent);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PlacedConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PlacedConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.note(true);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.note(true);
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// The library flushes when it has handed over all that it had.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.note(false);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
