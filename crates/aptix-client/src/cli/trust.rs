//! Which servers a command trusts, and what proves to them who calls beside a token.

use std::path::PathBuf;

use crate::connection::{ClearText, ClientCertificate, Trust};

/// How servers and this side prove who they are.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct TrustArgs {
    /// A file with the authorities of the server's certificate, in PEM [default: those of the system]
    #[arg(long = "ca", value_name = "FILE", env = "APTIX_CA")]
    authorities: Option<PathBuf>,
    /// A file with a certificate that proves to the server who calls, in PEM
    #[arg(long, value_name = "FILE", requires = "client_key", env = "APTIX_CLIENT_CERTIFICATE")]
    client_certificate: Option<PathBuf>,
    /// The file with the private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "client_certificate", env = "APTIX_CLIENT_KEY")]
    client_key: Option<PathBuf>,
    /// Send the token also without TLS to another machine, where others can read it on the way
    #[arg(long)]
    token_in_clear_text: bool,
}

impl TrustArgs {
    pub(super) fn trust(&self) -> Trust {
        let certificate = self.client_certificate.clone().zip(self.client_key.clone());
        Trust {
            authorities: self.authorities.clone(),
            certificate: certificate.map(|(certificate, key)| ClientCertificate { certificate, key }),
            clear_text: if self.token_in_clear_text { ClearText::Anywhere } else { ClearText::Loopback },
        }
    }
}
