//! The static table (RFC 7541 appendix A).

use super::table::TableEntry;
use crate::h2::line::{Name, Value};

/// An entry: its line, as stored in a [`HeaderBlock`](super::HeaderBlock), and the length of its name.
struct Entry {
    line: &'static [u8],
    name_length: usize,
}

/// The entry with the valid index `index`.
#[inline(always)]
pub(super) fn get(index: usize) -> TableEntry<'static> {
    let Entry { line, name_length } = STATIC[index - 1];
    TableEntry { line, name_length, name_is: NAMES[index - 1], value_is: Value::Sound }
}

/// The kinds of the names.
static NAMES: [Name; STATIC_LENGTH] = {
    let mut names = [Name::Malformed; STATIC_LENGTH];
    let mut place = 0;
    while place < STATIC_LENGTH {
        names[place] = Name::of_static(place + 1);
        place += 1;
    }
    names
};

macro_rules! entries {
    ($($name:literal $value:literal)+) => {
        [$(Entry {
            line: concat!($name, ": ", $value, "\r\n").as_bytes(),
            name_length: $name.len(),
        }),+]
    };
}

/// Number of entries in the table. The first index is 1.
pub(super) const STATIC_LENGTH: usize = 61;

/// The entries, from index 1.
static STATIC: [Entry; STATIC_LENGTH] = entries! {
    ":authority" ""
    ":method" "GET"
    ":method" "POST"
    ":path" "/"
    ":path" "/index.html"
    ":scheme" "http"
    ":scheme" "https"
    ":status" "200"
    ":status" "204"
    ":status" "206"
    ":status" "304"
    ":status" "400"
    ":status" "404"
    ":status" "500"
    "accept-charset" ""
    "accept-encoding" "gzip, deflate"
    "accept-language" ""
    "accept-ranges" ""
    "accept" ""
    "access-control-allow-origin" ""
    "age" ""
    "allow" ""
    "authorization" ""
    "cache-control" ""
    "content-disposition" ""
    "content-encoding" ""
    "content-language" ""
    "content-length" ""
    "content-location" ""
    "content-range" ""
    "content-type" ""
    "cookie" ""
    "date" ""
    "etag" ""
    "expect" ""
    "expires" ""
    "from" ""
    "host" ""
    "if-match" ""
    "if-modified-since" ""
    "if-none-match" ""
    "if-range" ""
    "if-unmodified-since" ""
    "last-modified" ""
    "link" ""
    "location" ""
    "max-forwards" ""
    "proxy-authenticate" ""
    "proxy-authorization" ""
    "range" ""
    "referer" ""
    "refresh" ""
    "retry-after" ""
    "server" ""
    "set-cookie" ""
    "strict-transport-security" ""
    "transfer-encoding" ""
    "user-agent" ""
    "vary" ""
    "via" ""
    "www-authenticate" ""
};

/// Index of the first entry with this name.
#[inline]
pub(super) fn index_of(name: &[u8]) -> Option<usize> {
    Some(match name {
        b":authority" => 1,
        b":method" => 2,
        b":path" => 4,
        b":scheme" => 6,
        b":status" => 8,
        b"accept-charset" => 15,
        b"accept-encoding" => 16,
        b"accept-language" => 17,
        b"accept-ranges" => 18,
        b"accept" => 19,
        b"access-control-allow-origin" => 20,
        b"age" => 21,
        b"allow" => 22,
        b"authorization" => 23,
        b"cache-control" => 24,
        b"content-disposition" => 25,
        b"content-encoding" => 26,
        b"content-language" => 27,
        b"content-length" => 28,
        b"content-location" => 29,
        b"content-range" => 30,
        b"content-type" => 31,
        b"cookie" => 32,
        b"date" => 33,
        b"etag" => 34,
        b"expect" => 35,
        b"expires" => 36,
        b"from" => 37,
        b"host" => 38,
        b"if-match" => 39,
        b"if-modified-since" => 40,
        b"if-none-match" => 41,
        b"if-range" => 42,
        b"if-unmodified-since" => 43,
        b"last-modified" => 44,
        b"link" => 45,
        b"location" => 46,
        b"max-forwards" => 47,
        b"proxy-authenticate" => 48,
        b"proxy-authorization" => 49,
        b"range" => 50,
        b"referer" => 51,
        b"refresh" => 52,
        b"retry-after" => 53,
        b"server" => 54,
        b"set-cookie" => 55,
        b"strict-transport-security" => 56,
        b"transfer-encoding" => 57,
        b"user-agent" => 58,
        b"vary" => 59,
        b"via" => 60,
        b"www-authenticate" => 61,
        _ => return None,
    })
}

/// Index of the entry with this name and value. `index` is the first entry with the name.
#[inline]
pub(super) fn index_of_value(index: usize, value: &[u8]) -> Option<usize> {
    Some(match (index, value) {
        (2, b"GET") => 2,
        (2, b"POST") => 3,
        (4, b"/") => 4,
        (4, b"/index.html") => 5,
        (6, b"http") => 6,
        (6, b"https") => 7,
        (8, b"200") => 8,
        (8, b"204") => 9,
        (8, b"206") => 10,
        (8, b"304") => 11,
        (8, b"400") => 12,
        (8, b"404") => 13,
        (8, b"500") => 14,
        (16, b"gzip, deflate") => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Entry {
        fn name(&self) -> &'static [u8] {
            &self.line[..self.name_length]
        }
    }

    #[test]
    fn every_entry_is_found_by_its_name_and_value() {
        for (place, entry) in STATIC.iter().enumerate() {
            let first = index_of(entry.name()).expect("its name");
            assert_eq!(STATIC[first - 1].name(), entry.name());
            assert!(first <= place + 1);
            assert_eq!(NAMES[place], Name::of(entry.name()));
            let value = &entry.line[entry.name_length + 2..entry.line.len() - 2];
            if !value.is_empty() {
                assert_eq!(index_of_value(first, value), Some(place + 1));
            }
        }
        assert_eq!(index_of(b"x-other"), None);
        assert_eq!(index_of_value(8, b"201"), None);
    }
}
