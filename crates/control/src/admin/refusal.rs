//! Refusals by the HTTP library: it answers a head that it cannot read with a status alone, and calls no route.
//! [`Refusals`] turns such an answer into a problem document.
//!
//! An answer is the library's own if nobody has called the router since all earlier answers were sent. [`Calls`] notes the
//! calls. The library flushes a connection only when it has handed over all of its data.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::problem::{MEDIA_TYPE, Problem};
use super::{HEAD_SIZE_MAX, HEADERS_MAX};

/// The start of the library's answers.
const VERSION: &str = "HTTP/1.1 ";

/// The calls of the router on one connection. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicUsize,
    /// The calls whose answer the library has completely.
    ended: AtomicUsize,
}

impl Calls {
    /// Notes a call that begins, until the library has dropped the body of its answer.
    pub(super) async fn note<E>(
        self,
        answer: impl Future<Output = Result<Response, E>>,
    ) -> Result<Response, E> {
        self.0.begun.fetch_add(1, Relaxed);
        let call = Call(self.0);
        Ok(answer.await?.map(|body| Body::new(NotedBody { body, _call: call })))
    }
}

/// A call. Dropping it ends it.
#[derive(Debug)]
struct Call(Arc<Counts>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Relaxed);
    }
}

/// The body of an answer of the router.
struct NotedBody {
    body: Body,
    _call: Call,
}

impl HttpBody for NotedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection on which refusals become problem documents.
pub(super) struct Refusals<S> {
    stream: S,
    calls: Calls,
    /// The number of calls whose answers were sent.
    sent: usize,
    /// The rest of a refusal.
    refusal: Bytes,
}

impl<S: AsyncWrite + Unpin> Refusals<S> {
    pub(super) fn new(stream: S, calls: Calls) -> Self {
        Self { stream, calls, sent: 0, refusal: Bytes::new() }
    }

    /// Whether the next bytes are the library's own.
    fn is_unasked(&self) -> bool {
        self.calls.0.begun.load(Relaxed) == self.sent
    }

    /// Notes that the library has handed over all of its data.
    fn note_flush(&mut self) {
        let Counts { begun, ended } = &*self.calls.0;
        let begun = begun.load(Relaxed);
        if ended.load(Relaxed) == begun {
            self.sent = begun;
        }
    }

    fn poll_refusal(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.refusal.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, &self.refusal))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.refusal = self.refusal.split_off(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Refusals<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Refusals<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_refusal(context))?;
        if self.is_unasked()
            && let Some(refusal) = documented(bytes)
        {
            self.refusal = refusal;
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_unasked() {
            let first = parts.iter().find(|part| !part.is_empty());
            return self.poll_write(context, first.map_or(&[], |part| &**part));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_refusal(context))?;
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.note_flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_refusal(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The answer with a problem document in place of its empty body; `None`: it is no refusal.
fn documented(answer: &[u8]) -> Option<Bytes> {
    let head = std::str::from_utf8(answer).ok()?.strip_suffix("\r\n\r\n")?;
    let code = head.strip_prefix(VERSION)?.get(..3)?;
    let status = StatusCode::from_bytes(code.as_bytes()).ok()?;
    let detail = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            format!("the head has more than {HEAD_SIZE_MAX} bytes or {HEADERS_MAX} headers")
        }
        StatusCode::BAD_REQUEST => "the head is not a valid head of HTTP/1.1".to_owned(),
        StatusCode::URI_TOO_LONG => "the path is too long".to_owned(),
        _ => return None,
    };
    let kept = |line: &&str| !line.to_ascii_lowercase().starts_with("content-");
    let lines: Vec<&str> = head.split("\r\n").filter(kept).collect();
    let document = Problem::new(status, detail).document();
    let mut text = format!(
        "{}\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {}\r\n\r\n",
        lines.join("\r\n"),
        document.len()
    )
    .into_bytes();
    text.extend(document);
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::Request;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    const REFUSAL: &[u8] =
        b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\ndate: now\r\n\r\n";

    /// Bytes of an answer that look like a refusal are passed on unchanged.
    #[tokio::test]
    async fn only_unasked_answers_are_refusals() {
        let calls = Calls::default();
        let mut stream = Refusals::new(Vec::<u8>::new(), calls.clone());
        let router = TowerToHyperService::new(Router::new().fallback(async || "text"));
        let request: Request = Request::default();
        let answer = calls.note(router.call(request)).await.unwrap();
        for _ in 0..2 {
            stream.write_all(REFUSAL).await.unwrap();
            stream.flush().await.unwrap();
        }
        // The library has the whole answer, and has not sent all of it.
        drop(answer);
        stream.write_all(REFUSAL).await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(stream.stream, REFUSAL.repeat(3));

        stream.stream.clear();
        stream.write_all(REFUSAL).await.unwrap();
        stream.flush().await.unwrap();
        let text = String::from_utf8(stream.stream).unwrap();
        let head = "HTTP/1.1 431 Request Header Fields Too Large\r\ndate: now\r\n\
                    content-type: application/problem+json\r\n";
        assert!(text.starts_with(head) && text.ends_with("}\n"), "{text}");
    }

    #[test]
    fn other_bytes_are_no_refusals() {
        for bytes in [
            &b""[..],
            b"HTTP/1.1 431",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 408 Request Timeout\r\n\r\n",
            b"HTTP/1.1 \xff\xff\xff\r\n\r\n",
            b"HTTP/1.1 431 Too Large\r\n\r\nbody",
        ] {
            assert_eq!(documented(bytes), None);
        }
    }
}
