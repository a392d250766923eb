//! Set-Cookie fields, made when a configuration is loaded.

use weir_http::cookies::{SetCookie, SetCookieError};

use super::{CookieTokens, OtherTokens, TOKEN_BYTES};

/// The values of the Set-Cookie fields that give a client its member, ready to be copied.
#[derive(Debug, Clone, Default)]
pub struct SetCookieFields {
    /// The values, one after the other, all of the same length.
    text: Vec<u8>,
    length: usize,
    /// The position in each value at which the token ends.
    token_end: usize,
}

impl SetCookieFields {
    /// The Set-Cookie values of `cookie` for every member.
    pub fn new(cookie: &SetCookie, tokens: &CookieTokens) -> Result<Self, SetCookieError> {
        cookie.check()?;
        let token_end = cookie.name.len() + "=".len() + TOKEN_BYTES;
        let mut fields = Self { text: Vec::new(), length: 0, token_end };
        for member in 0..tokens.members() as u32 {
            let field = cookie.field_value(tokens.token(member).as_bytes())?;
            fields.length = field.len();
            fields.text.extend_from_slice(&field);
        }
        Ok(fields)
    }

    /// Appends the field's value for a client of this member that also has tokens of other pools.
    ///
    /// # Panics
    /// If `member` is not an index of the labels that the tokens were made from.
    pub fn write(&self, member: u32, others: &OtherTokens, out: &mut Vec<u8>) {
        let start = member as usize * self.length;
        let (own, attributes) = self.text[start..start + self.length].split_at(self.token_end);
        out.extend_from_slice(own);
        out.extend_from_slice(others.text());
        out.extend_from_slice(attributes);
    }
}
