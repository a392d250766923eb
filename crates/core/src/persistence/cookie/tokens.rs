//! The tokens of one pool, and the search for them in a client's cookies.

use std::collections::HashMap;

use data_encoding::BASE64URL_NOPAD;
use foldhash::quality::FixedState;
use weir_http::cookies::cookies;

use super::{OtherTokens, PoolId, TAG_TEXT_BYTES, TOKEN_BYTES, Token};
use crate::persistence::keys::{Keys, Use};

/// The member of a client's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenMember {
    /// The index of the member in the labels that the tokens were made from.
    pub member: u32,
    /// The form of the token.
    pub standing: TokenForm,
}

/// The forms in which a client may send a token, in order of precedence. All except the first are renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenForm {
    /// The current form.
    Current,
    /// The current form with an older key.
    OlderKey,
    /// In a cookie whose name contains the pool's id. Such cookies were set for one pool, so they have precedence over
    /// an older cookie without an id.
    FormerName,
    /// Without the pool's id.
    FormerToken,
}

/// A tag's text in two pieces that overlap. Each tag has one spelling, so nothing needs to be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Spelling(u128, u128);

impl Spelling {
    fn of(tag: &[u8; TAG_TEXT_BYTES]) -> Self {
        let (start, end) = (tag.first_chunk(), tag.last_chunk());
        let piece = |piece: Option<&[u8; 16]>| u128::from_ne_bytes(*piece.expect("it is longer"));
        Self(piece(start), piece(end))
    }
}

/// The member of a tag, in a table of one pool.
#[derive(Debug, Clone, Copy)]
struct Member {
    index: u32,
    is_current_key: bool,
}

/// The tokens of a pool's members.
#[derive(Debug, Clone)]
pub struct CookieTokens {
    /// The ids of the pool; the id under the signing key comes first.
    ids: Vec<PoolId>,
    /// Members by the tags of all keys.
    found: HashMap<Spelling, Member, FixedState>,
    /// The tokens of the signing key, one after the other.
    text: String,
}

impl CookieTokens {
    /// The tokens of the pool's members, identified by their `labels` (addresses). If a label occurs twice, its token
    /// identifies the first of these members.
    ///
    /// Cost: about two SHA-256 blocks per member and key.
    pub fn new<'a>(
        keys: &Keys,
        pool_name: &str,
        labels: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let seed = keys.hash("cookie tokens").bytes(pool_name.as_bytes());
        let ids: Vec<PoolId> = PoolId::of(keys, pool_name).collect();
        let mut found: HashMap<_, _, _> = HashMap::with_hasher(FixedState::with_seed(seed));
        let mut text = String::new();
        for (index, label) in (0..).zip(labels) {
            for (number, key) in keys.iter().enumerate() {
                let is_current_key = number == 0;
                let tag = BASE64URL_NOPAD.encode(&key.tag(Use::Token, &[pool_name, label]));
                let spelling = tag.as_bytes().try_into().expect("the length of every tag");
                if is_current_key {
                    text.extend(ids[0].0.map(char::from));
                    text.push_str(&tag);
                }
                let member = Member { index, is_current_key };
                found.entry(Spelling::of(spelling)).or_insert(member);
            }
        }
        Self { ids, found, text }
    }

    /// The member in the client's cookies. `values`: the values of the Cookie fields; `name`: the configured name. Tokens of
    /// other pools in cookies of this name are stored in `others`.
    ///
    /// A client can have several cookies of the same name, for different paths or domains: of tokens with the same
    /// standing, the first one is used.
    pub fn read<'a>(
        &self,
        cookie_fields: impl IntoIterator<Item = &'a [u8]>,
        name: &str,
        others: &mut OtherTokens,
    ) -> Option<TokenMember> {
        let mut best = None;
        for (cookie_name, value) in cookie_fields.into_iter().flat_map(cookies) {
            if cookie_name == name.as_bytes() {
                self.read_value(value, &mut best, others);
            } else if let Some(id) = PoolId::of_former_name(cookie_name, name)
                && self.ids.contains(&id)
                && let Some(token @ Token { pool: None, .. }) = Token::parse(value)
            {
                take_better(&mut best, self.member(token), TokenForm::FormerName);
            }
        }
        best
    }

    fn read_value(&self, value: &[u8], best: &mut Option<TokenMember>, others: &mut OtherTokens) {
        // The usual case: one token, of this pool.
        if let Some(token @ Token { pool: Some(id), .. }) = Token::parse(value)
            && self.ids.contains(&id)
        {
            return self.read_token(token, best, others);
        }
        for token in Token::all(value) {
            self.read_token(token, best, others);
        }
    }

    fn read_token(
        &self,
        token: Token<'_>,
        best: &mut Option<TokenMember>,
        others: &mut OtherTokens,
    ) {
        let member = self.member(token);
        match token.pool {
            Some(id) if self.ids.contains(&id) => {
                let is_current =
                    id == self.ids[0] && member.is_some_and(|member| member.is_current_key);
                let standing = if is_current { TokenForm::Current } else { TokenForm::OlderKey };
                take_better(best, member, standing);
            }
            None if member.is_some() => take_better(best, member, TokenForm::FormerToken),
            Some(_) | None => others.keep(token),
        }
    }

    fn member(&self, token: Token<'_>) -> Option<Member> {
        self.found.get(&Spelling::of(token.tag)).copied()
    }

    /// The token of a member.
    ///
    /// # Panics
    /// If `member` is not an index of the labels that the tokens were made from.
    pub fn token(&self, member: u32) -> &str {
        let start = member as usize * TOKEN_BYTES;
        &self.text[start..start + TOKEN_BYTES]
    }

    /// The number of members.
    pub fn members(&self) -> usize {
        self.text.len() / TOKEN_BYTES
    }
}

fn take_better(best: &mut Option<TokenMember>, member: Option<Member>, standing: TokenForm) {
    if let Some(Member { index, .. }) = member
        && best.is_none_or(|best| standing < best.standing)
    {
        *best = Some(TokenMember { member: index, standing });
    }
}
