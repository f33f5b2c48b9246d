//! The form of a catalogue: words that are published, each with its meaning.

/// Declares an enum whose variants are `UPPER_SNAKE` words, each with its meaning.
macro_rules! catalogue {
    ($(#[$outer:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $code:literal,)+ }) => {
        crate::words::words! {
            $(#[$outer])*
            $name, code, from_code { $($(#[doc = $doc])+ $variant = $code,)+ }
        }

        impl $name {
            /// What it means, as written in the reference.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

pub(super) use catalogue;
