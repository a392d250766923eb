//! Names and attributes of cookies in the file.

use weir_core::policy::Secure;
use weir_http::cookies::SameSite;

use crate::decode::{Context, Spanned};
use crate::quote::clip;
use crate::raw::policy as raw;
use crate::scalar::Text;
use crate::shapes::AutoOr;

/// When a cookie is `Secure`.
pub(super) fn secure(raw: AutoOr) -> Secure {
    match raw {
        AutoOr::Auto => Secure::Auto,
        AutoOr::Always(true) => Secure::Always,
        AutoOr::Always(false) => Secure::Never,
    }
}

/// The value of `SameSite`.
pub(super) fn same_site(raw: raw::SameSite) -> SameSite {
    match raw {
        raw::SameSite::Strict => SameSite::Strict,
        raw::SameSite::Lax => SameSite::Lax,
        raw::SameSite::None => SameSite::None,
    }
}

/// Whether browsers accept cookies with these attributes; if not, that is reported.
pub(super) fn is_sent(
    same_site: Option<&Spanned<raw::SameSite>>,
    secure: &Spanned<bool>,
    context: &mut Context,
) -> bool {
    let none = same_site.filter(|word| word.value == raw::SameSite::None);
    let Some(none) = none.filter(|_| !secure.value) else { return true };
    let message = "browsers drop cookies with `SameSite=None` that are not `Secure`";
    context.error_help(none.span, message, "set `secure: true` too");
    false
}

/// Checks a name, or a prefix of names with a star.
pub(super) fn is_name(name: &Spanned<Text>, context: &mut Context) -> bool {
    let text = &name.value.0;
    let bare = text.strip_suffix('*').unwrap_or(text);
    let is_token = |byte: u8| byte.is_ascii_graphic() && !br#"()<>@,;:\"/[]?={}*"#.contains(&byte);
    let is_sound = !text.is_empty() && bare.bytes().all(is_token);
    if !is_sound {
        let message = format!("`{}` is not a valid cookie name", clip(text));
        let help = "write a name, its beginning with a star behind it (`cart_*`), or `*` for all";
        context.error_help(name.span, message, help);
    }
    is_sound
}
