//! What is a path by its spelling alone, whatever files there are.

/// Endings of files that languages, their tools and formats for configuration and text have.
const ENDINGS: &[&str] = &[
    "adoc", "asm", "astro", "bash", "bat", "bazel", "bzl", "c", "cc", "cfg", "clj", "cljs", "cmake", "cmd", "coffee",
    "conf", "cpp", "cs", "csproj", "css", "csv", "cts", "cu", "cxx", "dart", "diff", "el", "elm", "env", "erl", "ex",
    "exs", "fish", "fs", "fsproj", "fsx", "gemspec", "go", "gql", "gradle", "graphql", "groovy", "h", "hbs", "hcl",
    "hpp", "hrl", "hs", "htm", "html", "hxx", "ini", "ipynb", "java", "jl", "js", "json", "json5", "jsonc", "jsonl",
    "jsx", "kt", "kts", "less", "lisp", "lock", "lua", "m", "md", "mdx", "mjs", "mk", "ml", "mli", "mod", "mts", "nim",
    "nix", "patch", "php", "pl", "plist", "pm", "po", "pp", "proto", "ps1", "psm1", "pug", "py", "pyi", "pyx", "r",
    "rake", "rb", "rkt", "rs", "rst", "s", "sass", "sbt", "scala", "scm", "scss", "sh", "sln", "sol", "sql", "sum",
    "svelte", "svg", "swift", "tcl", "tex", "tf", "tfvars", "thrift", "toml", "ts", "tsv", "tsx", "txt", "vb", "vim",
    "vue", "wat", "xaml", "xml", "xsd", "xsl", "yaml", "yml", "zig", "zsh",
];

/// Files that are known by a name without such an ending.
const NAMES: &[&str] = &[
    ".bashrc",
    ".dockerignore",
    ".editorconfig",
    ".env",
    ".eslintrc",
    ".gitattributes",
    ".gitignore",
    ".gitmodules",
    ".npmrc",
    ".nvmrc",
    ".prettierrc",
    ".profile",
    ".zshrc",
    "authors",
    "brewfile",
    "build",
    "capfile",
    "changelog",
    "codeowners",
    "containerfile",
    "copying",
    "dockerfile",
    "gemfile",
    "gnumakefile",
    "jenkinsfile",
    "justfile",
    "licence",
    "license",
    "makefile",
    "notice",
    "pipfile",
    "podfile",
    "procfile",
    "rakefile",
    "readme",
    "vagrantfile",
    "workspace",
];

/// Products whose names end as files do.
const PRODUCTS: &[&str] = &[
    "alpine.js",
    "angular.js",
    "backbone.js",
    "chart.js",
    "d3.js",
    "discord.js",
    "ember.js",
    "express.js",
    "knockout.js",
    "moment.js",
    "next.js",
    "node.js",
    "nuxt.js",
    "p5.js",
    "paper.js",
    "react.js",
    "socket.io",
    "solid.js",
    "three.js",
    "vue.js",
];

/// Whether a text is a path even if no file has it: it has a directory and an ending, or it is a name that only files have.
pub(super) fn is_path(text: &str) -> bool {
    let is_text =
        |character: char| !character.is_whitespace() && !matches!(character, '<' | '>' | '"' | '|' | '*' | '?');
    if text.is_empty() || text.ends_with('/') || text.contains("://") || !text.chars().all(is_text) {
        return false;
    }
    match text.rsplit_once('/') {
        Some((_, name)) => ending(name).is_some() || is_known(name),
        None => is_known(text) || is_of_language(text),
    }
}

/// Whether a text could be the path of a file that is there.
pub(super) fn may_be_path(text: &str) -> bool {
    let is_usual =
        |character: char| character.is_alphanumeric() || matches!(character, '.' | '/' | '_' | '-' | '+' | '@');
    text.contains(char::is_alphanumeric) && !text.ends_with(['/', '.']) && text.chars().all(is_usual)
}

/// The ending of a file's name: letters and digits, of which not all are digits.
fn ending(name: &str) -> Option<&str> {
    let (_, ending) = name.rsplit_once('.')?;
    let fits = ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_alphabetic());
    (fits && ending.len() <= 12).then_some(ending)
}

/// Names that are words as well count in the case that files have them in.
fn is_known(name: &str) -> bool {
    let is_word = !name.starts_with('.') && !name.ends_with("file");
    let is_spelled = !is_word || !name.contains(|character: char| character.is_ascii_lowercase());
    is_spelled && NAMES.contains(&name.to_ascii_lowercase().as_str())
}

fn is_of_language(name: &str) -> bool {
    let is_product = name.starts_with(char::is_uppercase) && PRODUCTS.contains(&name.to_ascii_lowercase().as_str());
    let has_stem = name.find('.').is_some_and(|dot| dot > 0) || name.matches('.').count() > 1;
    let known = |ending: &str| ENDINGS.contains(&ending.to_ascii_lowercase().as_str());
    !is_product && has_stem && ending(name).is_some_and(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_words() {
        for path in [
            "src/app.py",
            "a/b.x9",
            "./m.js",
            "app.py",
            "index.test.tsx",
            "Makefile",
            "Dockerfile",
            "deploy/Dockerfile",
            "LICENSE",
            ".gitignore",
            "conf/.env",
            "package.json",
            "README.md",
            "C:/x/y.rs",
            "node.js",
            "go.mod",
        ] {
            assert!(is_path(path), "{path}");
        }
        for word in [
            "Usage",
            "setup",
            "tests/",
            "src/",
            "and/or",
            "src/lib",
            "e.g.",
            "1.2",
            "v1/2.5",
            "Node.js",
            "https://x.org/a.json",
            "a b.py",
            "License",
            "build",
            "notice",
            "",
            ".",
            "..",
            ".py",
            "x.unknownending",
            "<path>/a.py",
            "foo.bar()",
        ] {
            assert!(!is_path(word), "{word}");
        }
    }
}
