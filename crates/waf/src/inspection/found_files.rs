//! What was found in files, as values that rules inspect.

use super::files::Kind;
use super::message::Message;
use super::nested_values;
use super::text::declaration_bytes;
use crate::body::{self, Body, LOOK_BYTES, NestedValues, Processor};
use crate::seclang::Variable;

/// Adds what was found in the files to the values that rules inspect.
pub(super) fn judge(message: &mut Message) {
    let found = std::mem::take(&mut message.body.files.found);
    for (kind, field, content) in found {
        let encoding = body::encoding_of(content.get(..LOOK_BYTES).unwrap_or(&content));
        match encoding.filter(|_| kind != Kind::Media) {
            Some(encoding) => {
                for reading in body::readings(encoding, &content) {
                    let declaration = declaration_bytes(body::significant(&reading));
                    let text = body::significant(&reading).get(declaration..).unwrap_or_default();
                    add(message, (kind, &field, text));
                }
            }
            None => add(message, (kind, &field, &content)),
        }
    }
}

/// Adds what was found in a file.
fn add(message: &mut Message, (kind, field, content): (Kind, &[u8], &[u8])) {
    match kind {
        Kind::Json => add_json(message, field, content, false),
        Kind::Xml => {
            let mut reading: Body = message.reader(Processor::Xml);
            reading.feed(content, &mut message.arguments());
            reading.finish(&mut message.arguments());
            message.add_joined();
            message.variables.add(Variable::FilesTmpContent, field, content);
        }
        Kind::Text => add_json(message, field, content, true),
        Kind::Document | Kind::Media | Kind::Unknown | Kind::Nothing => {
            message.variables.add(Variable::FilesTmpContent, field, content);
        }
    }
}

/// Adds the values in JSON to those of a field. Text, and JSON that is malformed or has too many values, is a value itself.
fn add_json(message: &mut Message, field: &[u8], content: &[u8], is_text: bool) {
    let name = message.variables.texts.add(field);
    let mut decoder =
        message.nested.take().unwrap_or_else(|| NestedValues::new(message.body.limits));
    let is_whole = !is_text || body::may_be_nested(content);
    let is_whole =
        is_whole && nested_values::add(message, Variable::ArgsPost, name, (&mut decoder, content));
    message.nested = Some(decoder);
    if !is_whole {
        let text = message.variables.texts.add(content);
        message.variables.values.add_nested(Variable::ArgsPost, name, None, text);
    }
}
