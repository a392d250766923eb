//! The expected answer of a monitor.

use regex::bytes::RegexBuilder;

use crate::decode::{Context, Spanned};
use crate::raw::monitor::DrainOn;
use crate::scalar::Text;
use crate::shapes::BodyExpectation;
use crate::snapshot::{BodyMatch, DrainAnswer};

/// Maximum size of a monitor's compiled regular expression.
const REGEX_SIZE_BYTES_MAX: usize = 1 << 20;

pub(super) fn drain_answer(raw: &Spanned<DrainOn>, context: &mut Context) -> Option<DrainAnswer> {
    if raw.status.is_none() && raw.body.is_none() {
        context.error_help(
            raw.span,
            "`drain_on` says nothing of the answer",
            "give `status`, `body` or both",
        );
        return None;
    }
    Some(DrainAnswer {
        status: raw.status.as_ref().map(|status| status.value.0.clone()),
        body: body_match(raw.body.as_ref(), context)?,
    })
}

/// The required content of a body, if any.
pub(super) fn body_match(
    body: Option<&Spanned<BodyExpectation>>,
    context: &mut Context,
) -> Option<Option<BodyMatch>> {
    let Some(body) = body else {
        return Some(None);
    };
    Some(match &body.value {
        BodyExpectation::Substring(Text(text)) => {
            Some(BodyMatch::Substring(text.as_bytes().into()))
        }
        BodyExpectation::Pattern(raw) => match (&raw.regex, &raw.hex) {
            (Some(regex), None) => Some(BodyMatch::Regex(compile(regex, context)?)),
            (None, Some(hex)) => Some(BodyMatch::Substring(hex.value.0.as_slice().into())),
            _ => {
                let message = "an expected body is a text, `regex` or `hex`";
                context.error_help(body.span, message, "give one of them");
                return None;
            }
        },
    })
}

fn compile(regex: &Spanned<Text>, context: &mut Context) -> Option<regex::bytes::Regex> {
    let pattern = regex.value.0.as_str();
    if let Err(error) = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern) {
        let (reason, offset_bytes) = match &error {
            regex_syntax::Error::Parse(error) => {
                (error.kind().to_string(), error.span().start.offset)
            }
            regex_syntax::Error::Translate(error) => {
                (error.kind().to_string(), error.span().start.offset)
            }
            other => (other.to_string(), 0),
        };
        let offset = pattern.get(..offset_bytes).map_or(0, |before| before.chars().count());
        context.error_help(
            regex.span.within(pattern, offset),
            format!("the regular expression is not valid: {reason}, at character {}", offset + 1),
            "a special character that means itself is written with a backslash, in single quotes",
        );
        return None;
    }
    match RegexBuilder::new(pattern).size_limit(REGEX_SIZE_BYTES_MAX).build() {
        Ok(regex) => Some(regex),
        Err(_) => {
            context.error_help(
                regex.span,
                format!(
                    "the regular expression needs more than {} KiB when compiled",
                    REGEX_SIZE_BYTES_MAX >> 10
                ),
                "lower the counts of its repetitions",
            );
            None
        }
    }
}
