//! Which names hold secrets: every entry of the tables in several spellings, and names that only look like one.

use aptix_model::protection::{Secret, is_private_key, secret};

const CLOSED: &[&str] = &[
    ".env",
    ".env.local",
    ".env.production",
    ".env.production.local",
    ".npmrc",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".git-credentials",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "server.pem",
    ".pem",
    ".ssh/id_rsa",
];

const ASKED: &[&str] = &[
    ".aws/credentials",
    ".aws/config",
    ".ssh/config",
    ".ssh/known_hosts",
    ".gnupg/secring.gpg",
    "server.key",
    "a.p12",
    "a.pfx",
    "a.jks",
    "a.keystore",
    "credentials.json",
    "service-account.json",
    "service-account-prod.json",
    "serviceAccountKey.json",
    ".docker/config.json",
    ".kube/config",
    ".pgpass",
    ".htpasswd",
    ".vault-token",
    "terraform.tfvars",
    "prod.auto.tfvars",
    "prod.tfvars.json",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh/hosts.yml",
    ".config/gcloud/access_tokens.db",
    ".yarnrc.yml",
    "prod.env",
    ".env-prod",
    ".env_prod",
    ".dev.vars",
    ".dev.vars.production",
    "web.env.local",
    "id_rsa.bak",
    "id_rsa.old",
    "id_rsa~",
    "id_rsa2",
    "id_rsa_work",
    "id_ed25519_sk",
    "id_ecdsa_sk",
    "id_dsa-2020",
    "local.settings.json",
    ".azure/accessTokens.json",
    "kubeconfig",
    "prod.kubeconfig",
    "putty.ppk",
    "p.kdbx",
    ".gem/credentials",
    ".my.cnf",
    "client_secret_1.apps.googleusercontent.com.json",
];

const FREE: &[&str] = &[
    ".env.example",
    ".env.sample",
    ".env.template",
    ".env.dist",
    ".ENV.Example",
    "example.env",
    "sample.env",
    ".env-example",
    ".env_template",
    ".dev.vars.example",
    "environment.py",
    "env.ts",
    "vite-env.d.ts",
    "prod.env.js",
    ".envrc",
    "src/keys.rs",
    "monkey.key.ts",
    "key",
    "keys",
    "src/key.rs",
    "keystore.rs",
    "id_rsa.pub",
    "id_ed25519_sk.pub",
    "id_rsa.rs",
    "id_rsa_test.go",
    "id_rsacrypto",
    "docs/id_rsa.md",
    "aws/credentials",
    "ssh/config",
    "docker/config.json",
    "config.json",
    ".docker/Dockerfile",
    ".kube/readme.md",
    ".cargo/config.toml",
    ".config/ghostty/config",
    "credentials.rs",
    "credentials.json.md",
    "service-accounts.md",
    "terraform.tf",
    "variables.tf",
    "terraform.tfvars.example",
    "example.tfvars",
    "local.settings.example.json",
    "htpasswd",
    "pem",
    "pem.rs",
    "npmrc",
    "netrc",
    ".netrc.md",
    "settings.json",
    "tsconfig.json",
    ".gitignore",
    ".yarnrc",
    "yarnrc.yml",
    ".env/bin/activate",
    "README.md",
    "package.json",
    "Cargo.toml",
    "env~1.txt.rs",
];

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
        for spelling in names.iter().flat_map(|path| spellings(path)) {
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
