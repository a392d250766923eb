//! The bytes of a request body on their way to its parser: converted to the characters that rules read.

use super::content;
use super::message::Message;
use crate::body::{Body, Characters, Charset};

/// The converter and the parser of a body.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub parser: Option<Body>,
    characters: Option<Characters>,
}

/// Adds bytes of a body as they were sent.
pub(super) fn take(message: &mut Message, bytes: &[u8]) {
    let (charset, processor) = (message.body.head.charset, message.body.processor);
    let characters = &mut message.body.reading.characters;
    match characters.get_or_insert_with(|| Characters::new(charset, processor)).take(bytes) {
        Ok(bytes) => parse(message, &bytes),
        Err(reason) => {
            // Rules read it all the same.
            message.body.failure.get_or_insert(reason);
            parse(message, bytes);
        }
    }
}

/// Adds the last characters.
pub(super) fn end(message: &mut Message) {
    match message.body.reading.characters.as_mut().map(Characters::finish) {
        Some(Ok(bytes)) => parse(message, &bytes),
        Some(Err(reason)) if message.body.limit.is_none() => {
            message.body.failure.get_or_insert(reason);
        }
        _ => {}
    }
}

/// Adds bytes in the encoding that rules read.
fn parse(message: &mut Message, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let is_kept = content::is_open(message);
    if content::is_let_go(message, bytes) {
        return;
    }
    if let Some(reason) = message.body.head.unreadable {
        message.body.failure.get_or_insert(reason);
        return;
    }
    message.texts.count_work(bytes.len());
    if message.keeps_body() && !is_kept {
        message.body.content.kept.extend_from_slice(bytes);
    }
    let mut parser = message.body.reading.parser.take().unwrap_or_else(|| {
        let characters = message.body.reading.characters.as_ref();
        let is_converted = characters.is_some_and(Characters::is_converted);
        let charset = if is_converted { Charset::Utf16 } else { message.body.head.charset };
        message.reader(message.body.processor).with_charset(charset)
    });
    parser.feed(bytes, &mut message.arguments());
    message.body.reading.parser = Some(parser);
}
