//! Passwords and shared keys of monitors.

use std::path::Path;

use super::files::read_text;
use crate::decode::{Context, Spanned};
use crate::raw::monitor as raw;
use crate::shapes::{FilePath, SecretText};
use crate::snapshot::{Credentials, Secret};

/// Maximum size of a file with a secret.
const SECRET_BYTES_MAX: u64 = 4 << 10;

/// User and password, if they are given; one without the other is an error.
pub(super) fn credentials(
    raw: &raw::Monitor,
    directory: &Path,
    context: &mut Context,
) -> Option<Option<Credentials>> {
    let password = password(raw, directory, context)?;
    match (&raw.user, password) {
        (None, None) => Some(None),
        (Some(user), Some(password)) => {
            Some(Some(Credentials { user: user.value.0.as_str().into(), password }))
        }
        (Some(user), None) => {
            let message = "`user` needs a password";
            context.error_help(user.span, message, "add `password` or `password_file`");
            None
        }
        (None, Some(_)) => {
            let span = (raw.password.as_ref().map(|key| key.span))
                .or(raw.password_file.as_ref().map(|key| key.span))?;
            context.error_help(span, "a password needs a user", "add `user`");
            None
        }
    }
}

/// The password, if it is given. The outer `None`: an error.
pub(super) fn password(
    raw: &raw::Monitor,
    directory: &Path,
    context: &mut Context,
) -> Option<Option<Secret>> {
    let given = (raw.password.as_ref(), raw.password_file.as_ref());
    secret(given, "password", directory, context)
}

/// A secret with the key `name`: inline, or from a file. The outer `None`: an error.
pub(super) fn secret(
    (text, file): (Option<&Spanned<SecretText>>, Option<&Spanned<FilePath>>),
    name: &str,
    directory: &Path,
    context: &mut Context,
) -> Option<Option<Secret>> {
    let file = match (text, file) {
        (None, None) => return Some(None),
        (Some(text), None) => return Some(Some(text.value.0.clone())),
        (None, Some(file)) => file,
        (Some(_), Some(file)) => {
            let message = format!("`{name}` and `{name}_file` are both given");
            context.error_help(file.span, message, "remove one of them");
            return None;
        }
    };
    let text = read_text(file, directory, SECRET_BYTES_MAX, context)?;
    let shown = file.value.0.display();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        context.error(file.span, format!("{shown} has no {name} in it"));
        return None;
    }
    if text.contains('\n') {
        let message = format!("{shown} has more than one line, where it is one {name}");
        context.error_help(file.span, message, "leave one line in it");
        return None;
    }
    Some(Some(Secret::new(text)))
}
