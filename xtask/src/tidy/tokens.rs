//! A cursor over the tokens of a Rust file, with the few forms that imports take: paths, `use` trees, items of tests.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A position in a list of tokens.
pub(super) struct Cursor {
    tokens: Vec<TokenTree>,
    pub(super) at: usize,
}

impl Cursor {
    pub(super) fn new(tokens: TokenStream) -> Self {
        Self { tokens: tokens.into_iter().collect(), at: 0 }
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<&TokenTree> {
        self.tokens.get(self.at + ahead)
    }

    pub(super) fn is_punct(&self, ahead: usize, expected: char) -> bool {
        matches!(self.peek(ahead), Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
    }

    pub(super) fn group(&self, ahead: usize, delimiter: Delimiter) -> Option<Group> {
        match self.peek(ahead) {
            Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group.clone()),
            _ => None,
        }
    }

    /// Whether here begins `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
    pub(super) fn is_test(&self) -> bool {
        let attribute = self.group(1, Delimiter::Bracket).map(|group| group.stream().to_string().replace(' ', ""));
        attribute.is_some_and(|text| text == "cfg(test)" || text.starts_with("cfg(all(test"))
    }

    /// Skips an item with its attributes: up to its body, or the `;` that ends it.
    pub(super) fn skip_item(&mut self) {
        let is_use = self.tokens.iter().skip(self.at).find_map(|token| match token {
            TokenTree::Ident(ident) if ident != "pub" => Some(ident == "use"),
            _ => None,
        });
        while self.at < self.tokens.len() {
            let is_end = self.is_punct(0, ';') || (is_use != Some(true) && self.group(0, Delimiter::Brace).is_some());
            self.at += 1;
            if is_end {
                break;
            }
        }
    }

    /// Skips a token that names nothing, and the name after a `.` or a `::`, which is no path of its own.
    pub(super) fn skip_name(&mut self) {
        let is_range = self.is_punct(0, '.') && self.is_punct(1, '.');
        let is_member = self.is_punct(0, '.') && !is_range;
        let is_inner = self.is_punct(0, ':') && self.is_punct(1, ':');
        self.at += if is_inner || is_range { 2 } else { 1 };
        if (is_member || is_inner) && matches!(self.peek(0), Some(TokenTree::Ident(_))) {
            self.path();
        }
    }

    /// Takes `a::b::c`.
    pub(super) fn path(&mut self) -> Vec<String> {
        let mut path = Vec::new();
        while let Some(TokenTree::Ident(ident)) = self.peek(0) {
            path.push(ident.to_string());
            self.at += 1;
            let continues =
                self.is_punct(0, ':') && self.is_punct(1, ':') && matches!(self.peek(2), Some(TokenTree::Ident(_)));
            if !continues {
                break;
            }
            self.at += 2;
        }
        path
    }

    /// Takes the tree of a `use` up to its `;`: each path with the name it is known by, `*` for a glob.
    pub(super) fn use_tree(&mut self, prefix: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, String)>) {
        let mut path = prefix.clone();
        let mut alias = None;
        let mut is_open = false;
        while let Some(token) = self.peek(0).cloned() {
            self.at += 1;
            match token {
                TokenTree::Ident(ident) if ident == "as" => {
                    alias = self.peek(0).map(ToString::to_string);
                    self.at += 1;
                }
                TokenTree::Ident(ident) if ident == "self" && !path.is_empty() => is_open = true,
                TokenTree::Ident(ident) => {
                    path.push(ident.to_string());
                    is_open = true;
                }
                TokenTree::Group(group) => {
                    let mut inner = Self::new(group.stream());
                    inner.use_tree(&mut path.clone(), leaves);
                    is_open = false;
                }
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    leaves.push((path.iter().cloned().chain(["*".to_owned()]).collect(), "*".to_owned()));
                    is_open = false;
                }
                TokenTree::Punct(punct) if matches!(punct.as_char(), ',' | ';') => {
                    finish(&mut path, &mut alias, &mut is_open, leaves);
                    path.clone_from(prefix);
                    if punct.as_char() == ';' {
                        return;
                    }
                }
                _ => {}
            }
        }
        finish(&mut path, &mut alias, &mut is_open, leaves);
    }
}

fn finish(
    path: &mut Vec<String>,
    alias: &mut Option<String>,
    is_open: &mut bool,
    leaves: &mut Vec<(Vec<String>, String)>,
) {
    if std::mem::take(is_open)
        && let Some(last) = path.last().cloned()
    {
        leaves.push((std::mem::take(path), alias.take().unwrap_or(last)));
    }
}
