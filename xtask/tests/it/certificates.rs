//! Authorities and certificates that tests make for themselves.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

use crate::processes::write;

/// An authority whose certificates are trusted by whoever is given its file.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, in PEM.
    pub(crate) pem: String,
}

/// A certificate and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for these hosts, which are names or addresses.
    pub(crate) fn server(&self, hosts: &[&str]) -> Pair {
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        self.issue(CertificateParams::new(hosts).unwrap())
    }

    /// A certificate of a client with these names.
    pub(crate) fn client(&self, names: Vec<SanType>) -> Pair {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names;
        self.issue(params)
    }

    fn issue(&self, mut params: CertificateParams) -> Pair {
        params.distinguished_name.push(DnType::CommonName, "leaf");
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }
}

impl Pair {
    /// Writes both into a directory, the key for its owner alone. Answers where.
    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    pub(crate) fn put(&self, directory: &Path, name: &str) -> (PathBuf, PathBuf) {
        let paths = (directory.join(format!("{name}.pem")), directory.join(format!("{name}-key.pem")));
        write(&paths.0, &self.certificate);
        write(&paths.1, &self.key);
        fs::set_permissions(&paths.1, fs::Permissions::from_mode(0o600)).unwrap();
        paths
    }
}
