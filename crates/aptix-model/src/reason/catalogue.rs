//! The form of a catalogue: words that are published, each with its meaning.

/// Declares an enum whose variants are `UPPER_SNAKE` words, each with its meaning.
macro_rules! catalogue {
    ($(#[$outer:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $code:literal,)+ }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)+ }

        impl $name {
            /// Every member, in catalogue order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The published word.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// What it means, as written in the reference.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }

            /// The member with this published word.
            #[must_use]
            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|member| member.code() == code)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.code())
            }
        }
    };
}

pub(super) use catalogue;
