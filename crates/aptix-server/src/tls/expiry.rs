//! When a certificate expires.

use aptix_model::record::UnixMillis;
use aptix_model::wire;

use super::der::{Elements, SEQUENCE};

/// Tags of times: with two digits of the year, and with four.
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// When a certificate expires; `None` if it does not hold that where it should.
pub(super) fn expires(certificate: &[u8]) -> Option<UnixMillis> {
    let mut signed = Elements(certificate).only(SEQUENCE)?.only(SEQUENCE)?;
    signed.find_map(|(tag, content)| {
        let mut validity = Elements(content);
        let (first, _) = validity.next().filter(|_| tag == SEQUENCE)?;
        let (second, ends) = validity.next()?;
        let is_validity = [first, second].iter().all(|tag| matches!(*tag, UTC_TIME | GENERALIZED_TIME));
        is_validity.then(|| time(second, ends)).flatten()
    })
}

/// A time as RFC 5280 has it: `YYMMDDHHMMSSZ` until 2049, and `YYYYMMDDHHMMSSZ`.
fn time(tag: u8, text: &[u8]) -> Option<UnixMillis> {
    let text = str::from_utf8(text).ok()?;
    let (year, rest) = text.split_at_checked(if tag == UTC_TIME { 2 } else { 4 })?;
    let century = match tag {
        UTC_TIME if year < "50" => "20",
        UTC_TIME => "19",
        _ => "",
    };
    let part = |at: usize| rest.get(at..at + 2);
    let (month, day, hour, minute, second) = (part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    wire::parse_time(&format!("{century}{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    #[test]
    fn the_end_of_a_certificate_is_read() {
        for ((year, month, day), seconds) in [
            ((1970, 1, 2), 86_400),
            ((2000, 2, 29), 951_782_400),
            ((2020, 1, 1), 1_577_836_800),
            ((2049, 12, 31), 2_524_521_600),
            ((2400, 3, 1), 13_574_649_600),
        ] {
            let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
            params.not_before = date_time_ymd(1970, 1, 1);
            params.not_after = date_time_ymd(year, month, day);
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            assert_eq!(expires(certificate.der()), Some(UnixMillis(seconds * 1000)), "{year}");
            for length in 0..100 {
                assert_eq!(expires(&certificate.der()[..length]), None);
            }
        }
    }
}
