//! Users of client certificates: the subject's common name is the user name, its organizations are the groups.
//!
//! Assumed: the TLS layer has verified the chain. Only the subject is decoded here.

use aws_lc_rs::digest;
use rustls::pki_types::CertificateDer;

use super::{
    UserInfo,
    der::{OBJECT_IDENTIFIER, SEQUENCE, SET, element, expect},
    user::{CREDENTIAL_ID_KEY, UserExtra},
};

/// 2.5.4.3
const COMMON_NAME_OID: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION_OID: &[u8] = &[0x55, 0x04, 0x0a];
/// 1.3.6.1.4.1.57683.2, Kubernetes' own
const UID_OID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];

/// The user of a verified certificate. `None` without a common name, with more than one uid, or with a
/// malformed subject.
pub fn user_from_certificate(certificate: &CertificateDer<'_>) -> Option<UserInfo> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let CertificateSubject { name, groups, uids } = subject(parsed.subject())?;
    let uid = match uids.as_slice() {
        [] => "",
        [one] if !one.is_empty() => one,
        _ => return None,
    };
    let fingerprint = digest::digest(&digest::SHA256, certificate);
    let id: String = fingerprint.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = UserExtra::from([(CREDENTIAL_ID_KEY.to_owned(), vec![format!("X509SHA256={id}")])]);
    let user = UserInfo::new(name.filter(|name| !name.is_empty())?, groups);
    Some(user.with_uid(uid).with_extra(extra).with_authenticated_group())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct CertificateSubject<'a> {
    name: Option<&'a str>,
    groups: Vec<&'a str>,
    uids: Vec<&'a str>,
}

/// Decodes the content of an RDNSequence.
fn subject(mut sets: &[u8]) -> Option<CertificateSubject<'_>> {
    let mut subject = CertificateSubject::default();
    while !sets.is_empty() {
        let mut attributes;
        (attributes, sets) = expect(SET, sets)?;
        while !attributes.is_empty() {
            let attribute;
            (attribute, attributes) = expect(SEQUENCE, attributes)?;
            let (kind, value) = expect(OBJECT_IDENTIFIER, attribute)?;
            match kind {
                // Of several the last one counts, as in kube-apiserver.
                COMMON_NAME_OID => subject.name = Some(text(value)?),
                ORGANIZATION_OID => subject.groups.push(text(value)?),
                UID_OID => subject.uids.push(text(value)?),
                _ => {}
            }
        }
    }
    Some(subject)
}

/// A string type whose bytes are UTF-8: UTF8String, NumericString, PrintableString or IA5String.
fn text(value: &[u8]) -> Option<&str> {
    let (tag, contents, rest) = element(value)?;
    let is_text = matches!(tag, 0x0c | 0x12 | 0x13 | 0x16) && rest.is_empty();
    std::str::from_utf8(contents).ok().filter(|_| is_text)
}

#[cfg(test)]
mod tests;
