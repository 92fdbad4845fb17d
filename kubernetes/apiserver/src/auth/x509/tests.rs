use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;

fn certificate(attributes: &[(DnType, &str)]) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, value) in attributes {
        params.distinguished_name.push(kind.clone(), *value);
    }
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().clone()
}

fn uid() -> DnType {
    DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2])
}

#[test]
fn the_common_name_is_the_user_and_the_organization_the_group() {
    let subject = [(DnType::OrganizationName, "system:masters"), (DnType::CommonName, "jané"), (uid(), "u1")];
    let user = user_from_certificate(&certificate(&subject)).unwrap();
    assert_eq!((&*user.name, &*user.uid), ("jané", "u1"));
    assert_eq!(user.groups.join(" "), "system:masters system:authenticated");
    let id = user.extra.get(CREDENTIAL_ID_KEY).unwrap().first().unwrap();
    assert_eq!(id.len(), "X509SHA256=".len() + 64);
}

#[test]
fn several_organizations_are_several_groups() {
    // SET { SEQUENCE { 2.5.4.10, "a" }, SEQUENCE { 2.5.4.10, "b" } }, SET { SEQUENCE { 2.5.4.3, "c" } }
    let group = |name| [0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x0a, 0x13, 0x01, name];
    let mut der = vec![0x31, 20];
    der.extend(group(b'a').into_iter().chain(group(b'b')));
    der.extend([0x31, 0x0a, 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, b'c']);
    assert_eq!(subject(&der), Some(CertificateSubject { name: Some("c"), groups: vec!["a", "b"], uids: vec![] }));
}

#[test]
fn without_a_common_name_there_is_no_user() {
    assert_eq!(user_from_certificate(&certificate(&[(DnType::OrganizationName, "system:masters")])), None);
    assert_eq!(user_from_certificate(&certificate(&[(DnType::CommonName, "")])), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = subject(&bytes);
        let _ = user_from_certificate(&CertificateDer::from(bytes));
    }
}
