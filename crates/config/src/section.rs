//! `section!`, `variants!` and `choice!`: one declaration gives the raw type, its decoder, the list of known
//! keys, the JSON Schema and the reference in the documentation.

/// A map with fixed keys. One with a key `type`: [`variants!`].
///
/// ```text
/// section! {
///     /// What it is.
///     Name at "path.in.the.file" {
///         /// What the key means.
///         required key: Type;         // Option<Spanned<Type>>; absence is an error
///         optional key: Type;         // Option<Spanned<Type>>
///         default key: Type = value;  // Spanned<Type>
///         either key: Type = "other";  // Option<Spanned<Type>>; absence of both keys is an error; `a|b`: of all
///         required field as "type": Type;
///     }
///     later ["keys", "that", "are", "refused"]
/// }
/// ```
macro_rules! section {
    (
        $(#[doc = $section_doc:literal])+
        $name:ident at $path:literal $(by $by:ident)? {
            $(
                $(#[doc = $doc:literal])+
                $kind:ident $field:ident $(as $key:literal)? : $type:ty $(= $default:expr)?;
            )*
        }
        later [$($later:literal),* $(,)?]
    ) => {
        section!(@complete $($by)? $name);

        $(#[doc = $section_doc])+
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct $name {
            $(
                $(#[doc = $doc])+
                pub $field: section!(@slot $kind $type),
            )*
        }

        impl crate::decode::Section for $name {
            const PATH: &'static str = $path;
            const KEYS: &'static [&'static str] = &[$(section!(@key $field $($key)?)),*];
            const REQUIRED: &'static [bool] = &[$(section!(@required $kind)),*];
            const LATER: &'static [&'static str] = &[$($later),*];

            fn absent() -> Self {
                Self {
                    $($field: section!(@absent $kind $($default)?),)*
                }
            }
        }

        impl crate::decode::Decode for $name {
            fn expected() -> String {
                concat!("a map, see `", $path, "`").into()
            }

            fn schema(registry: &mut crate::decode::Registry) -> serde_json::Value {
                registry.section(
                    stringify!($name),
                    <Self as crate::decode::Section>::PATH,
                    concat!($($section_doc, "\n"),+),
                    |registry| section!(@typed [$($by)?] vec![$(
                        crate::decode::KeyInfo {
                            key: section!(@key $field $($key)?),
                            doc: crate::decode::tidy(concat!($($doc, "\n"),+)),
                            expected: <$type as crate::decode::Decode>::expected(),
                            required: section!(@required $kind),
                            or_else: section!(@or_else $kind $($default)?),
                            default: section!(@shown $kind $type $(= $default)?),
                            schema: <$type as crate::decode::Decode>::schema(registry),
                            types: None,
                        }
                    ),*]),
                )
            }

            fn decode(
                node: &crate::document::Node,
                context: &mut crate::decode::Context,
            ) -> Option<Self> {
                let fields = crate::decode::Fields::open::<Self>(node, context)?;
                Some(Self {
                    $($field: section!(
                        @read $kind fields context (section!(@key $field $($key)?)) $($default)?
                    ),)*
                })
            }
        }
    };

    (@complete $name:ident) => {
        const _: () = assert!(
            !crate::variants::have_type(<$name as crate::decode::Section>::KEYS),
            "keys depend on `type`: declare the section by `variants!`",
        );
    };
    (@complete $by:ident $name:ident) => {};

    (@typed [] $keys:expr) => { $keys };
    (@typed [$by:ident] $keys:expr) => { crate::variants::with_types::<Self>($keys) };

    (@slot default $type:ty) => { crate::decode::Spanned<$type> };
    (@slot $kind:ident $type:ty) => { Option<crate::decode::Spanned<$type>> };

    (@key $field:ident $key:literal) => { $key };
    (@key $field:ident) => { stringify!($field) };

    (@absent default $default:expr) => { crate::decode::Spanned::not_given($default) };
    (@absent either $other:expr) => { None };
    (@absent $kind:ident) => { None };

    (@required required) => { true };
    (@required $kind:ident) => { false };

    (@or_else either $other:expr) => { Some($other) };
    (@or_else $kind:ident $($default:expr)?) => { None };

    (@shown either $type:ty = $other:expr) => { None };
    (@shown $kind:ident $type:ty = $default:expr) => {{
        let default: $type = $default;
        Some(crate::decode::ShownDefault::shown(&default))
    }};
    (@shown $kind:ident $type:ty) => { None };

    (@read required $fields:ident $context:ident ($key:expr)) => {
        $fields.required($key, $context)
    };
    (@read either $fields:ident $context:ident ($key:expr) $other:expr) => {
        $fields.either($key, $other, $context)
    };
    (@read optional $fields:ident $context:ident ($key:expr)) => {
        $fields.optional($key, $context)
    };
    (@read default $fields:ident $context:ident ($key:expr) $default:expr) => {
        $fields.or_default($key, $default, $context)
    };
}

/// A map whose keys depend on a type, which is one of its keys or belongs to a section around it. As [`section!`], and
/// each key says which types take it, so a key without them does not compile.
///
/// ```text
/// variants! {
///     /// What it is.
///     Name at "path.in.the.file" by Type {
///         /// What the key means.
///         required kind as "type" for all: Type;
///         optional key for [Variant, Other]: Type;  // the first one is suggested to users of further types
///     }
///     plain [Further]                               // types that take only the keys for all
///     later ["keys", "that", "are", "refused"]
/// }
/// ```
///
/// A type that neither a key nor `plain` names does not compile. So whoever adds a type decides about its keys. `all` is
/// for keys that have nothing to do with the type.
macro_rules! variants {
    (
        $(#[doc = $section_doc:literal])+
        $name:ident at $path:literal by $by:ident {
            $(
                $(#[doc = $doc:literal])+
                $kind:ident $field:ident $(as $key:literal)? for $takers:tt : $type:ty $(= $default:expr)?;
            )*
        }
        $(plain [$($plain:ident),+ $(,)?])?
        later [$($later:literal),* $(,)?]
    ) => {
        section! {
            $(#[doc = $section_doc])+
            $name at $path by $by {
                $(
                    $(#[doc = $doc])+
                    $kind $field $(as $key)? : $type $(= $default)?;
                )*
            }
            later [$($later),*]
        }

        impl crate::variants::Variants for $name {
            type Kind = $by;

            const TAKERS: &'static [crate::variants::Takers<$by>] =
                &[$(variants!(@takers $by $takers)),*];

            fn places(&self) -> Vec<Option<crate::document::Span>> {
                vec![$(variants!(@place $kind self.$field)),*]
            }
        }

        const _: () = assert!(
            crate::variants::have_all(
                <$by as crate::variants::Choice>::ALL.len(),
                &[$(variants!(@numbers $by $takers),)* $(variants!(@numbers $by [$($plain),+]))?],
            ),
            "a type has no keys of its own: name it in keys that it takes, or in `plain`",
        );
    };

    (@takers $by:ident all) => { crate::variants::Takers::All };
    (@takers $by:ident [$($taker:ident),+ $(,)?]) => {
        crate::variants::Takers::Only(&[$($by::$taker),+])
    };

    (@numbers $by:ident all) => { &[] };
    (@numbers $by:ident [$($taker:ident),+ $(,)?]) => { &[$($by::$taker as usize),+] };

    (@place default $key:expr) => { $key.given.then_some($key.span) };
    (@place $kind:ident $key:expr) => { $key.as_ref().map(|key| key.span) };
}

/// One of several words. Words and map keys after `later` belong to the language, but are refused because they are not
/// supported yet.
macro_rules! choice {
    (
        $(#[doc = $choice_doc:literal])+
        $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
        }
        later [$($later:literal),* $(,)?] maps [$($map:literal),* $(,)?]
    ) => {
        $(#[doc = $choice_doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl crate::decode::Decode for $name {
            fn expected() -> String {
                crate::scalar::one_of(&[$($word),+])
            }

            fn schema(_: &mut crate::decode::Registry) -> serde_json::Value {
                crate::decode::words_schema(&[$(($word, concat!($($doc, "\n"),+))),+])
            }

            fn decode(
                node: &crate::document::Node,
                context: &mut crate::decode::Context,
            ) -> Option<Self> {
                crate::scalar::decode_choice(
                    node,
                    context,
                    &[$(($word, Self::$variant)),+],
                    &[$($later),*],
                    &[$($map),*],
                )
            }

            fn words() -> &'static [&'static str] {
                &[$($word),+]
            }
        }

        impl crate::decode::ShownDefault for $name {
            fn shown(&self) -> serde_json::Value {
                crate::variants::Choice::word(*self).into()
            }
        }

        impl crate::variants::Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

/// A map with exactly one of several keys, each with its own type of value, or a single word.
///
/// ```text
/// one_of! {
///     /// What it is.
///     Name at "path.in.the.file" {
///         /// What the key means.
///         Variant as "key": Type;     // Spanned<Type>
///     }
///     words {
///         /// What the word means.
///         Variant = "word";
///     }
/// }
/// ```
macro_rules! one_of {
    (
        $(#[doc = $one_doc:literal])+
        $name:ident at $path:literal {
            $($(#[doc = $doc:literal])+ $variant:ident as $key:literal : $type:ty;)+
        }
        words { $($(#[doc = $word_doc:literal])+ $word_variant:ident = $word:literal;)* }
    ) => {
        $(#[doc = $one_doc])+
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) enum $name {
            $($(#[doc = $doc])+ $variant(crate::decode::Spanned<$type>),)+
            $($(#[doc = $word_doc])+ $word_variant,)*
        }

        impl $name {
            /// The key or word in the file.
            pub(crate) fn key(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $key,)+
                    $(Self::$word_variant => $word,)*
                }
            }
        }

        impl crate::decode::Decode for $name {
            fn expected() -> String {
                let words: &[&str] = &[$($word),*];
                let keys = concat!("a map with one key, see `", $path, "`");
                if words.is_empty() {
                    keys.into()
                } else {
                    format!("{}, or {keys}", crate::scalar::one_of(words))
                }
            }

            fn schema(registry: &mut crate::decode::Registry) -> serde_json::Value {
                let map = registry.section(
                    stringify!($name),
                    $path,
                    concat!($($one_doc, "\n"),+),
                    |registry| vec![
                        $(crate::decode::KeyInfo {
                            key: $key,
                            doc: crate::decode::tidy(concat!($($doc, "\n"),+)),
                            expected: <$type as crate::decode::Decode>::expected(),
                            required: false,
                            or_else: None,
                            default: None,
                            schema: <$type as crate::decode::Decode>::schema(registry),
                            types: None,
                        },)+
                    ],
                );
                let words: &[(&str, &str)] = &[$(($word, concat!($($word_doc, "\n"),+))),*];
                let one = serde_json::json!({ "allOf": [map, { "minProperties": 1, "maxProperties": 1 }] });
                if words.is_empty() {
                    one
                } else {
                    let words = crate::decode::words_schema(words);
                    serde_json::json!({ "anyOf": [words, one] })
                }
            }

            fn decode(
                node: &crate::document::Node,
                context: &mut crate::decode::Context,
            ) -> Option<Self> {
                let words: &[(&str, Self)] = &[$(($word, Self::$word_variant)),*];
                let (key, entry) = match crate::one_of::the_one::<Self>(node, &[$($key),+], words, context)? {
                    crate::one_of::TheOne::Word(word) => return Some(word),
                    crate::one_of::TheOne::Entry(key, entry) => (key, entry),
                };
                context.within_key(&entry.key, |context| match key {
                    $($key => crate::decode::Decode::decode(&entry.value, context).map(Self::$variant),)+
                    _ => None,
                })
            }
        }
    };
}
