//! Which names are guarded: every entry of the tables in several spellings, and names that only look like one.

use aptix_model::protection::{Secret, is_dot_name, is_private_key, is_sensitive, of, secret};

const CLOSED: &str = "
    .env .env.local .env.production .env.production.local .npmrc .netrc _netrc .pypirc .git-credentials id_rsa id_dsa
    id_ecdsa id_ed25519 server.pem .pem .ssh/id_rsa
";

const ASKED: &str = "
    .aws/credentials .aws/config .ssh/config .ssh/known_hosts .gnupg/secring.gpg server.key a.p12 a.pfx a.jks
    a.keystore credentials.json service-account.json service-account-prod.json serviceAccountKey.json
    .docker/config.json .kube/config .pgpass .htpasswd .vault-token terraform.tfvars prod.auto.tfvars
    prod.tfvars.json terraform.tfstate terraform.tfstate.backup .cargo/credentials .cargo/credentials.toml
    .config/gh/hosts.yml .config/gcloud/access_tokens.db .yarnrc.yml prod.env .env-prod .env_prod .dev.vars
    .dev.vars.production web.env.local id_rsa.bak id_rsa.old id_rsa~ id_rsa2 id_rsa_work id_ed25519_sk id_ecdsa_sk
    id_dsa-2020 local.settings.json .azure/accessTokens.json kubeconfig prod.kubeconfig putty.ppk p.kdbx
    .gem/credentials .my.cnf client_secret_1.apps.googleusercontent.com.json
";

const FREE: &str = "
    .env.example .env.sample .env.template .env.dist .ENV.Example example.env sample.env .env-example .env_template
    .dev.vars.example environment.py env.ts vite-env.d.ts prod.env.js .envrc src/keys.rs monkey.key.ts key keys
    src/key.rs keystore.rs id_rsa.pub id_ed25519_sk.pub id_rsa.rs id_rsa_test.go id_rsacrypto docs/id_rsa.md
    aws/credentials ssh/config docker/config.json config.json .docker/Dockerfile .kube/readme.md .cargo/config.toml
    .config/ghostty/config credentials.rs credentials.json.md service-accounts.md terraform.tf variables.tf
    terraform.tfvars.example example.tfvars local.settings.example.json htpasswd pem pem.rs npmrc netrc .netrc.md
    settings.json tsconfig.json .gitignore .yarnrc yarnrc.yml .env/bin/activate README.md package.json Cargo.toml
    env~1.txt.rs
";

/// A path in other spellings that a file system may take for the same.
fn spellings(path: &str) -> Vec<String> {
    let upper = path.to_uppercase();
    let mut invisible = path.to_owned();
    invisible.insert(path.rfind('/').map_or(0, |slash| slash + 1) + 1, '\u{200d}');
    let back = path.replace('/', "\\");
    vec![
        path.to_owned(),
        upper,
        invisible,
        back,
        format!("deep/er/{path}"),
        format!("{path}."),
        format!("{path}::$DATA"),
    ]
}

#[test]
fn every_name_of_the_tables_is_known_in_every_spelling() {
    for (names, expected) in [(CLOSED, Some(Secret::Closed)), (ASKED, Some(Secret::Asked)), (FREE, None)] {
        for spelling in names.split_whitespace().flat_map(spellings) {
            assert_eq!(secret(&spelling), expected, "{spelling:?}");
        }
    }
}

#[test]
fn short_names_of_ntfs_are_known() {
    for path in ["ENV~1", "env~1.loc", "NPMRC~1", "GIT-CR~1", "ID_ED2~1", "abcdef~3.pem"] {
        assert_eq!(secret(path), Some(Secret::Closed), "{path:?}");
    }
    for path in ["SSH~1/config", "AWS~1/x", "creden~1.jso", "servic~2.jso", "abcdef~1.key", "terraf~1.tfv", "PGPASS~1"]
    {
        assert_eq!(secret(path), Some(Secret::Asked), "{path:?}");
    }
    for path in ["readme~1.md", "src~1/main.rs", "abcdef~1.txt", "a~b"] {
        assert_eq!(secret(path), None, "{path:?}");
    }
}

#[test]
fn a_private_key_is_known_by_its_first_line_unless_it_is_for_tests() {
    let keys = [
        "-----BEGIN PRIVATE KEY-----\nMIIE",
        "-----BEGIN RSA PRIVATE KEY-----\r\nMIIE",
        "\u{feff}-----BEGIN EC PRIVATE KEY-----\n",
        "\n\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n",
        "PuTTY-User-Key-File-3: ssh-ed25519\n",
    ];
    for key in keys {
        for path in ["deploy", "a/b/server.txt", "contest/deploy", "src/testing.rs"] {
            assert!(is_private_key(path, key.as_bytes()), "{path:?} {key:?}");
        }
        for path in ["test/k", "tests/k", "a/Testdata/k", "fixtures/k", "x/FIXTURES/y/k", "test-keys/k"] {
            assert!(!is_private_key(path, key.as_bytes()), "{path:?} {key:?}");
        }
    }
    let others = [
        "",
        "-----BEGIN CERTIFICATE-----\n",
        "-----BEGIN PUBLIC KEY-----\n",
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n",
        "let header = \"-----BEGIN PRIVATE KEY-----\";\n",
        "# keys\n-----BEGIN PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEYS-----\n",
        "--BEGIN PRIVATE KEY--\n",
    ];
    for other in others {
        assert!(!is_private_key("deploy", other.as_bytes()), "{other:?}");
    }
    assert!(!is_private_key("deploy", b"\xff\xfe-----BEGIN PRIVATE KEY-----\n"));
}

/// Names that count at every depth.
const SENSITIVE: &str = "
    .gitattributes .gitconfig .gitmodules .githooks/pre-commit .git-hooks/x .husky/pre-push .huskyrc.js .hgrc .hgsub
    .lefthook.yml .lefthook-local.yml .lefthook/pre-commit/x.sh lefthook.yml lefthook.toml lefthook-local.yml
    .overcommit.yml .pre-commit-config.yaml .lfsconfig .lintstagedrc .lintstagedrc.json .simple-git-hooks.cjs
    .config/git/config
    .devcontainer.json .devcontainer/devcontainer.json .vscode/tasks.json .vs/tasks.vs.json .idea/workspace.xml
    .run/all.run.xml .fleet/run.json .zed/tasks.json .helix/languages.toml .theia/tasks.json .idx/dev.nix
    .codesandbox/tasks.json .replit .gitpod.yml .gitpod.Dockerfile .exrc .nvim.lua .nvimrc .vimrc .gvimrc
    .vim/plugin/x.vim .dir-locals.el .dir-locals-2.el .emacs .emacs.d/init.el .ycm_extra_conf.py x.code-workspace
    x.sublime-project x.sublime-build .config/nvim/init.lua .config/helix/config.toml .externalToolBuilders/x.launch
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
    .kshrc .cshrc .tcshrc .inputrc .tmux.conf .envrc .autoenv .autoenv.zsh .direnv/x .config/fish/config.fish
    .config/fish/functions/x.fish config.fish .gdbinit .lldbinit .lldbinit-Xcode .Rprofile .irbrc .pryrc .ghci
    .psqlrc .sqliterc .pdbrc .iex.exs app.desktop sitecustomize.py usercustomize.py distutils-precedence.pth
    .config/autostart/x .config/systemd/user/x.service .ipython/profile_default/startup/x.py .xprofile .xinitrc
    .cargo/config .cargo/config.toml rust-toolchain rust-toolchain.toml .yarn/releases/yarn.cjs .yarn/plugins/x.cjs
    .yarnrc .yarnrc.yml .pnpmfile.cjs mise.toml mise.local.toml .mise.toml .mise.local.toml .mise/config.toml
    .mise-tasks/x .config/mise/config.toml .tool-versions .bazelrc .bazeliskrc tools/bazel .mvn/jvm.config
    .mvn/wrapper/maven-wrapper.properties gradle/wrapper/gradle-wrapper.properties gradle-wrapper.properties
    gradle/wrapper/gradle-wrapper.jar .config/dotnet-tools.json
    .github/workflows/ci.yml .github/actions/x/action.yml .github/dependabot.yml .github/hooks/x.json
    .github/CODEOWNERS .gitlab/CODEOWNERS .gitlab-ci.yml x.gitlab-ci.yml .gitlab/ci/x.yml .woodpecker.yml
    .woodpecker/x.yml .appveyor.yml appveyor.yml .cirrus.yml .cirrus.star .azure-pipelines/x.yml azure-pipelines.yml
    azure-pipelines-nightly.yml .azuredevops/x.yml .semaphore/semaphore.yml .teamcity/settings.kts .tekton/x.yaml
    .travis.yml .drone.yml .buildkite/pipeline.yml .circleci/config.yml .forgejo/workflows/x.yml
    .gitea/workflows/x.yml .builds/x.yml .build.yml bitbucket-pipelines.yml cloudbuild.yaml cloudbuild.json
    buildspec.yml codemagic.yaml Jenkinsfile Jenkinsfile.release renovate.json renovate.json5 .renovaterc
    .renovaterc.json
    AGENTS.md AGENT.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md WARP.md .opencode/agent/x.md
    opencode.json opencode.jsonc .crush.json crush.json .crush/x .qwen/settings.json .amazonq/rules/x.md
    .augment/rules/x.md .augment-guidelines .augmentignore .trae/rules/x.md .junie/guidelines.md .goosehints
    .openhands/setup.sh .cline/x .clinerules .clinerules/x.md .kilocoderules .kilocode/rules/x.md .roo/rules/x.md
    .roorules .roorules-code .roomodes .rules .factory/x .amp/settings.json .agents/x .cursorignore .cursorrules
    .cursor/mcp.json .aiderignore .aider.conf.yml .aider.model.settings.yml .aider/x .claude/settings.json
    .codex/config.toml .continue/x .gemini/settings.json .kiro/x .windsurf/x .windsurfrules .mcp.json mcp.json
    .github/copilot-instructions.md .github/prompts/x.prompt.md .github/instructions/x.md .github/chatmodes/x.md
    .github/agents/x.md .github/skills/x/SKILL.md
";

/// Names that look like a sensitive one and are none.
const PLAIN: &str = "
    README.md src/main.rs package.json Cargo.toml Makefile docs/CODEOWNERS.md sub/CODEOWNERS sub/docs/CODEOWNERS
    CODEOWNERS.txt environment.py src/keys.rs monkey.key.ts vscode/x agents/x.md docs/agents.rst src/agent.rs
    claude.rs devcontainer.json cargo/config.toml .cargo/registry/x toolchain rust-toolchain.md yarn/x pnpmfile.cjs
    misery.toml premise.toml tool-versions src/lefthook.rs lefthook.md vimrc exrc.c gdbinit.py bazelrc
    tools/bazel.bzl bazel mvn/x gradle.properties gradlew.md dotnet-tools.json config/dotnet-tools.json gitpod.yml
    replit.md theia/x desktop src/desktop.rs bashrc zshrc profile profile.rs fish/config.rs src/config.fish.rs
    autoenv.py customize.py site.py x.pth.py woodpecker.yml cirrus.yml azure-pipelines.md pipelines.yml
    semaphore/x.rs src/semaphore.rs teamcity/x tekton/x cloudbuild.md buildspec.rs renovate.md dependabot.yml
    github/workflows/x.yml .github/ISSUE_TEMPLATE/bug.md .github/FUNDING.yml .github/PULL_REQUEST_TEMPLATE.md
    workflows/x hooks/x opencode.md crush.rs qwen.py warp.rs warped.md src/rules rules.md factory/x amp/x junie/x
    goosehints cursorignore .gitignore sub/.gitignore .editorconfig .dockerignore .prettierrc .eslintrc.json
    .env.example sub/.hidden mcp.md src/mcp.rs run/x vim/x idx/x direnv/x zsh/x emacs jenkins/file jenkinsfiles
    src/a~1.rs gitmod~x desktop~1.txt travis.yml docs/x.desktop.md
";

#[test]
fn what_a_machine_executes_is_sensitive_in_every_spelling() {
    for path in SENSITIVE.split_whitespace() {
        let mut all = spellings(path);
        all.push(format!("packages/one/{path}"));
        for spelling in all {
            assert!(is_sensitive(&spelling), "{spelling:?}");
            assert_eq!(of(&spelling), None, "{spelling:?} can be agreed to");
        }
    }
    for path in PLAIN.split_whitespace() {
        assert!(!is_sensitive(path), "{path:?}");
        assert!(!is_sensitive(&path.to_uppercase()), "{path:?}");
    }
    let short = [
        "DEVCON~1.JSO",
        "devcon~1/x",
        "CURSOR~1/x",
        "rust-t~1",
        "rust-t~1.tom",
        "GITHUB~1/WORKFL~1/x.yml",
        "sitecu~1.py",
    ];
    for path in short {
        assert!(is_sensitive(path), "{path:?}");
    }
    let [sensitive, plain] = [SENSITIVE, PLAIN].map(|names| names.split_whitespace().count());
    assert!(sensitive > 200 && plain > 100, "{sensitive} and {plain}");
}

#[test]
fn some_names_count_at_a_root_alone() {
    for path in ["CODEOWNERS", "codeowners", "docs/CODEOWNERS", "Docs\\codeowners"] {
        assert!(is_sensitive(path), "{path:?}");
        assert!(!is_sensitive(&format!("sub/{path}")), "{path:?}");
    }
}

#[test]
fn a_dot_name_at_a_root_is_known_unless_nothing_executes_it() {
    for path in [
        ".new",
        ".newtool/config",
        ".NEW",
        "\u{200d}.new",
        ".gitignore/x",
        ".env.example/x",
        ".well-known/x",
        ".prettierrc.js",
        ".gitignore.py",
        ".ruby-version",
    ] {
        assert!(is_dot_name(path), "{path:?}");
    }
    for path in [
        "x",
        "sub/.new",
        "..%2fx",
        "...a",
        "x.new",
        ".gitignore",
        ".GITIGNORE",
        ".env.example",
        ".env.sample",
        ".env.template",
        ".env.dist",
        ".dockerignore",
        ".npmignore",
        ".prettierignore",
        ".eslintignore",
        ".editorconfig",
        ".gitkeep",
        ".nvmrc",
        ".python-version",
        ".browserslistrc",
        ".markdownlint.json",
        ".markdownlintignore",
        ".markdownlint-cli2.yaml",
        "",
    ] {
        assert!(!is_dot_name(path), "{path:?}");
    }
}
