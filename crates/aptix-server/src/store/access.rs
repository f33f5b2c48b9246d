//! Who may call, as a store keeps it: tokens.

use std::collections::BTreeMap;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::token::{Ended, Scope, Token};

/// Tokens that a store keeps; those that have ended are among them.
pub const TOKENS: usize = 20_000;

/// A token as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptToken {
    /// What is known of it.
    pub token: Token,
    /// SHA-256 of what proves who its holder is: of the secret that they send or, where that is a certificate, of its name.
    pub digest: Sha256Digest,
}

/// What a store answers about its tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tokens {
    /// Those that can be read, by name.
    pub readable: Vec<KeptToken>,
    /// What is wrong with each other one, which is of no use.
    pub damaged: Vec<String>,
    /// Whether a token was made, as is known beside the records: also where these were lost.
    pub are_needed: bool,
}

impl Tokens {
    /// Whether no token was ever made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.readable.is_empty() && self.damaged.is_empty() && !self.are_needed
    }
}

/// What came of adding a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TokenAdded {
    /// It is kept.
    New,
    /// Its name belongs to another one, which may have ended.
    NameUsed,
    /// This token, which has not ended, is for the same certificate. A store that several servers share detects it; the registry of a
    /// single server knows every token.
    CertificateUsed(TokenName),
    /// There is no such workspace as it is for.
    NoWorkspace,
    /// There are [`TOKENS`] already.
    TooMany,
}

/// What becomes of a new token, next to so many others, if there are such workspaces.
pub(super) fn added(token: &Token, is_used: bool, others: usize, has: impl FnOnce(&WorkspaceId) -> bool) -> TokenAdded {
    match &token.scope {
        _ if is_used => TokenAdded::NameUsed,
        _ if others >= TOKENS => TokenAdded::TooMany,
        Scope::One(workspace) if !has(workspace) => TokenAdded::NoWorkspace,
        Scope::One(_) | Scope::All => TokenAdded::New,
    }
}

/// Tokens that are kept in memory.
#[derive(Debug, Default)]
pub(super) struct KeptInMemory(BTreeMap<TokenName, KeptToken>);

impl KeptInMemory {
    pub(super) fn all(&self) -> Tokens {
        Tokens { readable: self.0.values().cloned().collect(), ..Tokens::default() }
    }

    pub(super) fn add(&mut self, kept: KeptToken, has: impl FnOnce(&WorkspaceId) -> bool) -> TokenAdded {
        let added = added(&kept.token, self.0.contains_key(&kept.token.name), self.0.len(), has);
        if added == TokenAdded::New {
            self.0.insert(kept.token.name.clone(), kept);
        }
        added
    }

    /// Ends the tokens for one workspace alone; answers the names of those that had not ended.
    pub(super) fn end_of(&mut self, workspace: &WorkspaceId, ended: Ended) -> Vec<TokenName> {
        let tokens = self.0.values_mut().map(|kept| &mut kept.token).filter(|token| token.ended.is_none());
        let of_one = tokens.filter(|token| token.scope == Scope::One(workspace.clone()));
        of_one
            .map(|token| {
                token.ended = Some(ended);
                token.name.clone()
            })
            .collect()
    }

    pub(super) fn end(&mut self, name: &TokenName, ended: Ended) -> Option<Token> {
        let token = &mut self.0.get_mut(name)?.token;
        token.ended.get_or_insert(ended);
        Some(token.clone())
    }
}
