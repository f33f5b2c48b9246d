//! The form of an enum whose members are published words.

/// Declares an enum with a published word for each member, a method that gives the word and one that reads it.
macro_rules! words {
    ($(#[$outer:meta])* $name:ident, $word:ident, $read:ident { $($(#[$doc:meta])+ $variant:ident = $text:literal,)+ }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[$doc])+ $variant,)+ }

        impl $name {
            /// Every member, in the order of their declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant,)+];

            /// The published word.
            #[must_use]
            pub const fn $word(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The member with this published word.
            #[must_use]
            pub fn $read(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|member| member.$word() == word)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.$word())
            }
        }
    };
}

pub(crate) use words;
