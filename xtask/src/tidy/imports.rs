//! Reads the imports of one crate: which file names an item of which other file, outside of tests.
//!
//! The scanner sees `mod`, `use`, and every path in code and in macro calls. It follows re-exports to the file that
//! defines the item. `mod` declarations and re-exports are no imports by themselves.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, bail};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tokens::Cursor;

/// Which files of a crate import which. A file goes by its path below `src/` without `.rs`, and by `a/mod` also where it
/// is an `a.rs` beside a folder `a/`.
#[derive(Default)]
pub(super) struct Imports {
    pub(super) files: BTreeSet<String>,
    /// The first line that imports, and what it names, by importing and imported file.
    pub(super) arrows: BTreeMap<(String, String), (usize, String)>,
}

/// A module, in a file of its own or within one.
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Names that `use` imports.
    aliases: BTreeMap<String, Alias>,
    paths: Vec<Named>,
}

struct Alias {
    path: Vec<String>,
    is_reexport: bool,
}

/// A path in code, and where.
struct Named {
    path: Vec<String>,
    line: usize,
    /// Whether it is the path of a `use`: then it is no import if it leads to a module, which paths in code begin with.
    is_use: bool,
}

/// Where a path leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item that this module defines.
    ItemOf(usize),
}

/// Reads a crate from its files, by their paths below `src/`.
///
/// # Errors
///
/// When a file is missing or cannot be tokenized.
pub(super) fn read(crate_name: &str, sources: &BTreeMap<&str, &str>) -> Result<Imports> {
    let mut tree = Tree { sources, own_name: crate_name.replace('-', "_"), modules: Vec::new() };
    for root in ["lib.rs", "main.rs"] {
        if sources.contains_key(root) {
            tree.read_file(root, "", None)?;
        }
    }
    Ok(tree.imports())
}

struct Tree<'a> {
    sources: &'a BTreeMap<&'a str, &'a str>,
    /// The name under which the binary names the library, which is read first.
    own_name: String,
    modules: Vec<Module>,
}

impl Tree<'_> {
    /// Reads a module from its file; `folder` is where its children are, empty or with a `/` at its end.
    fn read_file(&mut self, path: &str, folder: &str, parent: Option<usize>) -> Result<usize> {
        let source = self.sources.get(path).with_context(|| format!("{path} is missing"))?;
        let tokens: TokenStream = source.parse().map_err(|error| anyhow!("failed to tokenize {path}: {error}"))?;
        let stem = path.strip_suffix(".rs").unwrap_or(path);
        let has_folder = self.sources.keys().any(|other| other.strip_prefix(stem).is_some_and(|r| r.starts_with('/')));
        let file = if has_folder { format!("{stem}/mod") } else { stem.to_owned() };
        let module = self.add(file, parent);
        self.scan(module, folder, tokens)?;
        Ok(module)
    }

    fn add(&mut self, file: String, parent: Option<usize>) -> usize {
        let (children, aliases, paths) = Default::default();
        self.modules.push(Module { file, parent, children, aliases, paths });
        self.modules.len() - 1
    }

    #[expect(clippy::indexing_slicing, reason = "`add` alone makes the numbers of modules, and none is removed")]
    fn module(&self, number: usize) -> &Module {
        &self.modules[number]
    }

    #[expect(clippy::indexing_slicing, reason = "`add` alone makes the numbers of modules, and none is removed")]
    fn module_mut(&mut self, number: usize) -> &mut Module {
        &mut self.modules[number]
    }

    fn scan(&mut self, module: usize, folder: &str, tokens: TokenStream) -> Result<()> {
        let mut cursor = Cursor::new(tokens);
        let mut is_public = false;
        while let Some(token) = cursor.peek(0).cloned() {
            let line = token.span().start().line;
            match &token {
                TokenTree::Punct(punct) if punct.as_char() == '#' && cursor.is_test() => cursor.skip_item(),
                TokenTree::Ident(ident) if ident == "pub" => {
                    cursor.at += 1;
                    cursor.at += usize::from(cursor.group(0, Delimiter::Parenthesis).is_some());
                    is_public = true;
                    continue;
                }
                TokenTree::Ident(ident) if ident == "use" && !cursor.is_punct(1, '<') => {
                    cursor.at += 1;
                    let mut leaves = Vec::new();
                    cursor.use_tree(&mut Vec::new(), &mut leaves);
                    for (path, alias) in leaves {
                        self.add_use(module, path, alias, is_public, line);
                    }
                }
                TokenTree::Ident(ident) if ident == "mod" => {
                    self.add_child(module, folder, &mut cursor)?;
                }
                TokenTree::Ident(_) => {
                    let path = cursor.path();
                    self.module_mut(module).paths.push(Named { path, line, is_use: false });
                }
                TokenTree::Group(group) => {
                    cursor.at += 1;
                    self.scan(module, folder, group.stream())?;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => cursor.skip_name(),
            }
            is_public = false;
        }
        Ok(())
    }

    fn add_use(&mut self, module: usize, path: Vec<String>, alias: String, is_reexport: bool, line: usize) {
        let module = self.module_mut(module);
        if !is_reexport {
            module.paths.push(Named { path: path.clone(), line, is_use: true });
        }
        if alias != "_" && alias != "*" {
            module.aliases.insert(alias, Alias { path, is_reexport });
        }
    }

    fn add_child(&mut self, module: usize, folder: &str, cursor: &mut Cursor) -> Result<()> {
        cursor.at += 1;
        let Some(TokenTree::Ident(name)) = cursor.peek(0) else { return Ok(()) };
        let name = name.to_string();
        cursor.at += 1;
        let below = format!("{folder}{name}/");
        let child = if let Some(group) = cursor.group(0, Delimiter::Brace) {
            cursor.at += 1;
            let child = self.add(self.module(module).file.clone(), Some(module));
            self.scan(child, &below, group.stream())?;
            child
        } else {
            let paths = [format!("{folder}{name}.rs"), format!("{below}mod.rs")];
            match paths.iter().find(|path| self.sources.contains_key(path.as_str())) {
                Some(path) => self.read_file(path, &below, Some(module))?,
                // Of another folder, by `#[path]`, which harnesses alone have.
                None if self.own_name.starts_with("xtask/harness/") => {
                    self.add(format!("{folder}{name}"), Some(module))
                }
                None => bail!("{} is missing", paths.join(" or ")),
            }
        };
        self.module_mut(module).children.insert(name, child);
        Ok(())
    }

    fn imports(&self) -> Imports {
        let mut imports = Imports::default();
        for (index, module) in self.modules.iter().enumerate() {
            imports.files.insert(module.file.clone());
            for named in &module.paths {
                let target = match self.resolve(index, &named.path, 0) {
                    Some(Target::ItemOf(target)) => target,
                    // `a::b` of which `b` is a module names nothing in it yet; a lone `a` in code is no module.
                    _ => continue,
                };
                if let ([name], false) = (named.path.as_slice(), named.is_use)
                    && !module.aliases.get(name).is_some_and(|alias| alias.is_reexport)
                {
                    continue;
                }
                let to = &self.module(target).file;
                if *to != module.file {
                    let arrow = imports.arrows.entry((module.file.clone(), to.clone()));
                    arrow.or_insert_with(|| (named.line, named.path.join("::")));
                }
            }
        }
        imports
    }

    /// Where a path leads that a module names; `None` outside of the crate.
    fn resolve(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        // A name may be imported under itself from another crate: `use uuid::Uuid` leads nowhere here.
        if depth > 16 {
            return None;
        }
        let start = match first.as_str() {
            "crate" => self.root_of(module),
            name if name == self.own_name => 0,
            "self" => module,
            "super" => self.module(module).parent?,
            name => match self.enter(module, name, depth)? {
                Target::Module(child) => child,
                item => return Some(item),
            },
        };
        self.descend(start, rest, depth)
    }

    fn descend(&self, mut module: usize, path: &[String], depth: usize) -> Option<Target> {
        for name in path {
            match (name.as_str(), self.enter(module, name, depth)) {
                ("self", _) => {}
                ("super", _) => module = self.module(module).parent?,
                (_, Some(Target::Module(child))) => module = child,
                (_, Some(item)) => return Some(item),
                (_, None) => return Some(Target::ItemOf(module)),
            }
        }
        Some(Target::Module(module))
    }

    /// What a name means in a module, if it is a child of it or an import.
    fn enter(&self, module: usize, name: &str, depth: usize) -> Option<Target> {
        let known = self.module(module);
        if let Some(child) = known.children.get(name) {
            return Some(Target::Module(*child));
        }
        self.resolve(module, &known.aliases.get(name)?.path, depth + 1)
    }

    fn root_of(&self, mut module: usize) -> usize {
        while let Some(parent) = self.module(module).parent {
            module = parent;
        }
        module
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each import as `from -> to`.
    fn arrows(sources: &[(&str, &str)]) -> Vec<String> {
        let imports = read("a-crate", &sources.iter().copied().collect()).unwrap();
        imports.arrows.keys().map(|(from, to)| format!("{from} -> {to}")).collect()
    }

    #[test]
    fn uses_and_paths_are_imports_and_declarations_are_not() {
        let found = arrows(&[
            ("lib.rs", "pub mod a;\nmod b;\nmod c;\npub use self::a::Item;"),
            ("a.rs", "use crate::b::{self as bee, deep::{One, Two as Three}};\nuse core::fmt;"),
            ("b.rs", "pub mod deep;\nfn f() -> Vec<super::c::C> { assert!(crate::a::is(), \"crate::none\"); }"),
            ("b/deep.rs", "impl crate::c::Show for One {} // crate::a::Item"),
            ("c.rs", ""),
        ]);
        assert_eq!(found, ["a -> b/deep", "b/deep -> c", "b/mod -> a", "b/mod -> c"]);
    }

    #[test]
    fn a_reexport_leads_to_the_file_that_defines_the_item() {
        let found = arrows(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "pub(crate) use crate::b::B;"),
            ("b.rs", "pub struct B;"),
            ("c.rs", "use super::a::B;\nuse crate::a;\nfn f(b: a::Other) {}"),
        ]);
        assert_eq!(found, ["c -> a", "c -> b"]);
        let used = arrows(&[("lib.rs", "mod a;\npub use a::B;\nfn f(b: B) {}"), ("a.rs", "")]);
        assert_eq!(used, ["lib -> a"]);
    }

    #[test]
    fn a_parent_and_its_child_are_two_files() {
        let found = arrows(&[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b;\nfn f() { X { x: x.b::<Self>::b(), ..b::g() } }"),
            ("a/b.rs", "use super::*;"),
        ]);
        assert_eq!(found, ["a/b -> a/mod", "a/mod -> a/b"]);
    }

    #[test]
    fn tests_are_left_out_and_modules_within_a_file_are_the_file() {
        let found = arrows(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "mod inner { use super::super::b::B; fn f() {} }\n#[cfg(test)]\nmod tests { use crate::c::C; }"),
            ("b.rs", "#[cfg(test)]\nuse crate::{a::A, c::C};\n#[cfg(test)]\nfn f() { crate::c::d() }\nfn g() {}"),
            ("c.rs", "macro_rules! m { () => { $crate::b::B } }"),
            ("main.rs", "use a_crate::c::C;"),
        ]);
        assert_eq!(found, ["a -> b", "c -> b", "main -> c"]);
    }
}
