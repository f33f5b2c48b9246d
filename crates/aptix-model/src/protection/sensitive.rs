//! Files that a person has to agree to: an editor, a shell, a build tool, an agent or a CI service runs what they say.
//!
//! A name counts at every depth where the tool looks in the directory that it is started in; it counts at a root alone
//! where the tool looks nowhere else.

use alloc::string::String;

use super::spelling::canonical_names;
use super::table::{Table, is_named};

/// Git's own settings that are part of a tree. Git follows no link in their place, and neither does Aptix.
pub(super) const GIT_SETTINGS: [&str; 3] = [".gitattributes", ".gitconfig", ".gitmodules"];

/// Settings of version control and its hooks.
const VERSION_CONTROL: Table = Table {
    directories: &[".git-hooks", ".githooks", ".husky", ".lefthook", ".lefthook-local"],
    files: &[
        ".hgrc",
        ".hgsub",
        ".huskyrc*",
        ".lefthook*",
        ".lfsconfig",
        ".lintstagedrc*",
        ".overcommit.yml",
        ".pre-commit-config.yaml",
        ".pre-commit-config.yml",
        ".simple-git-hooks.*",
        "lefthook-local.*",
        "lefthook.json",
        "lefthook.toml",
        "lefthook.yaml",
        "lefthook.yml",
    ],
    paths: &[".config/git/"],
};

/// Editors and the environments that they open.
const EDITORS: Table = Table {
    directories: &[
        ".codesandbox",
        ".devcontainer",
        ".doom.d",
        ".emacs.d",
        ".externaltoolbuilders",
        ".fleet",
        ".helix",
        ".idea",
        ".idx",
        ".nvim",
        ".run",
        ".theia",
        ".vim",
        ".vs",
        ".vscode",
        ".zed",
    ],
    files: &[
        ".devcontainer.json",
        ".dir-locals*.el",
        ".emacs",
        ".exrc",
        ".gitpod.dockerfile",
        ".gitpod.yml",
        ".gvimrc",
        ".ideavimrc",
        ".lvimrc",
        ".nvim.lua",
        ".nvimrc",
        ".replit",
        ".spacemacs",
        ".vimrc",
        ".vimspector.json",
        ".ycm_extra_conf.py",
        "*.code-workspace",
        "*.sublime-build",
        "*.sublime-project",
    ],
    paths: &[".config/helix/", ".config/nvim/", ".config/zed/"],
};

/// Shells, desktops, debuggers and interpreters, which run these files when they start.
const SHELLS: Table = Table {
    directories: &[".bashrc.d", ".direnv", ".ipython", ".jupyter", ".zsh"],
    files: &[
        ".autoenv*",
        ".bash_aliases",
        ".bash_login",
        ".bash_logout",
        ".bash_profile",
        ".bashrc",
        ".cshrc",
        ".envrc",
        ".gdbinit",
        ".ghci",
        ".iex.exs",
        ".inputrc",
        ".irbrc",
        ".kshrc",
        ".lldbinit*",
        ".login",
        ".logout",
        ".mkshrc",
        ".ocamlinit",
        ".pam_environment",
        ".pdbrc",
        ".profile",
        ".pryrc",
        ".psqlrc",
        ".renviron",
        ".rprofile",
        ".screenrc",
        ".sqliterc",
        ".tcshrc",
        ".tmux.conf",
        ".xinitrc",
        ".xprofile",
        ".xsession",
        ".zlogin",
        ".zlogout",
        ".zprofile",
        ".zshenv",
        ".zshrc",
        "*.desktop",
        "*.pth",
        "config.fish",
        "sitecustomize.py",
        "usercustomize.py",
    ],
    paths: &[".config/autostart/", ".config/environment.d/", ".config/fish/", ".config/systemd/"],
};

/// Build tools, package managers and the managers of their versions.
const BUILD_TOOLS: Table = Table {
    directories: &[".mise", ".mise-tasks", ".mvn", ".yarn"],
    files: &[
        ".bazeliskrc",
        ".bazelrc",
        ".mise*.toml",
        ".pnpmfile.cjs",
        ".pnpmfile.mjs",
        ".tool-versions",
        ".yarnrc",
        ".yarnrc.yml",
        "gradle-wrapper.jar",
        "gradle-wrapper.properties",
        "mise.*.toml",
        "mise.toml",
        "rust-toolchain",
        "rust-toolchain.toml",
    ],
    paths: &[".cargo/config*", ".config/dotnet-tools.json", ".config/mise/", "mise/config.toml", "tools/bazel"],
};

/// Services that build, deploy, update or review what is pushed.
const SERVICES: Table = Table {
    directories: &[
        ".azure-pipelines",
        ".azuredevops",
        ".buildkite",
        ".builds",
        ".circleci",
        ".forgejo",
        ".gitea",
        ".gitlab",
        ".harness",
        ".semaphore",
        ".teamcity",
        ".tekton",
        ".woodpecker",
    ],
    files: &[
        ".appveyor.yml",
        ".build.yml",
        ".cirrus.star",
        ".cirrus.yml",
        ".drone.star",
        ".drone.yml",
        ".renovaterc",
        ".renovaterc.json*",
        ".travis.yml",
        ".woodpecker.yaml",
        ".woodpecker.yml",
        "*.gitlab-ci.yml",
        "appveyor.yml",
        "azure-pipelines*.yaml",
        "azure-pipelines*.yml",
        "bitbucket-pipelines.yml",
        "buildspec.yaml",
        "buildspec.yml",
        "cloudbuild.json",
        "cloudbuild.yaml",
        "cloudbuild.yml",
        "codemagic.yaml",
        "jenkinsfile",
        "jenkinsfile.*",
        "renovate.json",
        "renovate.json5",
    ],
    paths: &[
        ".bitbucket/codeowners",
        ".github/actions/",
        ".github/codeowners",
        ".github/dependabot.yaml",
        ".github/dependabot.yml",
        ".github/hooks/",
        ".github/workflows/",
        "/codeowners",
        "/docs/codeowners",
    ],
};

/// Coding agents: their instructions, permissions, hooks and servers.
const AGENTS: Table = Table {
    directories: &[
        ".agents",
        ".aider",
        ".amazonq",
        ".amp",
        ".augment",
        ".claude",
        ".cline",
        ".clinerules",
        ".codex",
        ".continue",
        ".crush",
        ".cursor",
        ".factory",
        ".gemini",
        ".junie",
        ".kilocode",
        ".kilocoderules",
        ".kiro",
        ".opencode",
        ".openhands",
        ".qwen",
        ".roo",
        ".roorules",
        ".trae",
        ".windsurf",
    ],
    files: &[
        ".aider*",
        ".augment*",
        ".claudeignore",
        ".clineignore",
        ".codeiumignore",
        ".crush.json",
        ".cursorignore",
        ".cursorindexingignore",
        ".cursorrules",
        ".geminiignore",
        ".goosehints",
        ".goosehints.local",
        ".kilocodemodes",
        ".kilocoderules*",
        ".mcp.json",
        ".rooignore",
        ".roomodes",
        ".roorules*",
        ".rules",
        ".windsurfrules",
        "agent.md",
        "agents.md",
        "agents.override.md",
        "claude.local.md",
        "claude.md",
        "copilot-instructions.md",
        "crush.json",
        "gemini.md",
        "mcp.json",
        "opencode.json",
        "opencode.jsonc",
        "qwen.md",
        "warp.md",
    ],
    paths: &[".github/agents/", ".github/chatmodes/", ".github/instructions/", ".github/prompts/", ".github/skills/"],
};

const TABLES: [&Table; 6] = [&VERSION_CONTROL, &EDITORS, &SHELLS, &BUILD_TOOLS, &SERVICES, &AGENTS];

/// Names at a root that begin with a dot and that no tool executes. Every other new one asks.
const INERT: [&str; 15] = [
    ".browserslistrc",
    ".dockerignore",
    ".editorconfig",
    ".env.dist",
    ".env.example",
    ".env.sample",
    ".env.template",
    ".eslintignore",
    ".gitignore",
    ".gitkeep",
    ".markdownlint*",
    ".npmignore",
    ".nvmrc",
    ".prettierignore",
    ".python-version",
];

/// Whether a person has to agree before a file of this path is created, changed, renamed or deleted: a tool, an editor,
/// a shell, an agent or a CI service does what it says, or does what is said in its directory.
#[must_use]
pub fn is_sensitive(path: &str) -> bool {
    let names = canonical_names(path);
    is_git_setting(&names) || TABLES.iter().any(|table| table.has(&names))
}

fn is_git_setting(names: &[String]) -> bool {
    names.iter().any(|name| GIT_SETTINGS.iter().any(|setting| is_named(name, setting)))
}

/// Whether the first name of a path from a root on begins with one dot and is none that is known to be inert. A file or
/// directory of such a name that does not exist yet is created only after a person has agreed. Names that begin with
/// two dots are left out: no tool has such files.
#[must_use]
pub fn is_dot_name(path: &str) -> bool {
    let names = canonical_names(path);
    let is_inert = |name: &str| names.len() == 1 && INERT.iter().any(|inert| is_named(name, inert));
    names.first().is_some_and(|name| name.starts_with('.') && !name.starts_with("..") && !is_inert(name))
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    #[test]
    fn the_documentation_lists_every_name() {
        let page = include_str!("../../../../docs/policy.md").to_lowercase();
        let directories = TABLES.iter().flat_map(|table| table.directories).map(|name| format!("`{name}/`"));
        let others =
            TABLES.iter().flat_map(|table| table.files.iter().chain(table.paths)).map(|name| format!("`{name}`"));
        let rest = GIT_SETTINGS.iter().chain(&INERT).map(|name| format!("`{name}`"));
        for name in directories.chain(others).chain(rest) {
            assert!(page.contains(&name), "{name}");
        }
    }
}
