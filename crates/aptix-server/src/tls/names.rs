//! The names that a client's certificate has: those of its extension `subjectAltName` that a token can be for.
//!
//! The certificate has been verified before: what is read here is well-formed DER, and anything else has no names.

use aptix_model::token::CertificateName;

use super::der::{Elements, SEQUENCE};

/// Names that are read of one certificate.
const MOST: usize = 100;

/// Tags of DER.
const OBJECT_ID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const EXTENSIONS: u8 = 0xa3;

/// The object id of `subjectAltName`: 2.5.29.17.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// The names of a certificate.
pub(crate) fn names(certificate: &[u8]) -> Vec<CertificateName> {
    let found = alternative_names(certificate).unwrap_or_default();
    found.filter_map(|(tag, value)| name(tag, value)).take(MOST).collect()
}

fn name(tag: u8, value: &[u8]) -> Option<CertificateName> {
    let kind = match tag {
        0x81 => "email",
        0x82 => "dns",
        0x86 => "uri",
        _ => return None,
    };
    format!("{kind}:{}", str::from_utf8(value).ok()?).parse().ok()
}

/// The elements of the extension, which a certificate has at most once.
fn alternative_names(certificate: &[u8]) -> Option<Elements<'_>> {
    let certificate = Elements(certificate).only(SEQUENCE)?;
    let signed = certificate.only(SEQUENCE)?;
    let extensions = { signed }.find(|(tag, _)| *tag == EXTENSIONS)?.1;
    let mut extensions = Elements(extensions).only(SEQUENCE)?;
    extensions.find_map(|(_, extension)| {
        let mut parts = Elements(extension);
        let is_wanted = parts.next()? == (OBJECT_ID, SUBJECT_ALT_NAME);
        let (_, value) = parts.find(|(tag, _)| *tag == OCTETS).filter(|_| is_wanted)?;
        Elements(value).only(SEQUENCE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, SanType};

    fn certificate(names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_names_of_a_certificate_are_read() {
        let long = format!("{}.example", "a".repeat(60));
        let certificate = certificate(vec![
            SanType::DnsName("Laptop.Example".try_into().unwrap()),
            SanType::IpAddress([127, 0, 0, 1].into()),
            SanType::URI("spiffe://example/agent".try_into().unwrap()),
            SanType::Rfc822Name("ann@example.org".try_into().unwrap()),
            SanType::DnsName(long.as_str().try_into().unwrap()),
            SanType::DnsName("*.example".try_into().unwrap()),
        ]);
        let found: Vec<_> = names(&certificate).iter().map(ToString::to_string).collect();
        let long = format!("dns:{long}");
        assert_eq!(found, ["dns:laptop.example", "uri:spiffe://example/agent", "email:ann@example.org", &long]);
    }

    #[test]
    fn what_is_cut_off_or_changed_does_no_harm() {
        let whole = certificate(vec![SanType::DnsName("laptop.example".try_into().unwrap())]);
        assert!(names(&certificate(Vec::new())).is_empty());
        for length in 0..whole.len() {
            assert!(names(&whole[..length]).is_empty(), "{length}");
        }
        for at in 0..whole.len() {
            for byte in [0, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                assert!(names(&changed).len() <= 1);
            }
        }
    }
}
