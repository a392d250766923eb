//! Invariants of `traceparent`: parsed values occur in the input, and are the same after they were written.

use weir_http::trace_context::{TRACEPARENT_BYTES, TraceParent};

pub fn check(value: &[u8]) {
    let Some(read) = TraceParent::parse(value) else { return };
    assert!(read.trace_id != 0 && read.span_id != 0);
    let written = read.value();
    assert_eq!(TraceParent::parse(&written), Some(read));
    // Everything between the version and the flags is unchanged.
    assert_eq!(&value[2..53], &written[2..53]);
    assert!(value.len() == TRACEPARENT_BYTES || &value[..2] > b"00".as_slice());
    assert!(read.flags & !3 == 0);
}
