//! Parsing of certificates and keys in PEM.

use std::{borrow::Cow, fs};

use kubewake_config::model::{KeyPair, PemSource};
use rustls::{
    RootCertStore,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error as PemError, PemObject},
    },
};

use crate::components::BuildError;

/// A certificate chain, leaf first, and its key.
pub(super) fn read_key_pair(
    pair: &KeyPair,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), BuildError> {
    Ok((certificates(&pair.cert)?, key(&pair.key)?))
}

/// The certificates as roots of trust.
pub(super) fn read_roots(source: &PemSource) -> Result<RootCertStore, BuildError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(source)? {
        store.add(certificate).map_err(|error| {
            BuildError(format!("{} contains an invalid CA certificate: {error}", source_name(source)))
        })?;
    }
    Ok(store)
}

/// The location of the PEM data, for messages.
pub(super) fn source_name(source: &PemSource) -> String {
    match source {
        PemSource::File(path) => path.display().to_string(),
        PemSource::Inline(_) => "the document".into(),
    }
}

fn certificates(source: &PemSource) -> Result<Vec<CertificateDer<'static>>, BuildError> {
    let text = read_source(source)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(chain) if chain.is_empty() => {
            Err(BuildError(format!("{} contains no PEM certificate", source_name(source))))
        }
        Ok(chain) => Ok(chain),
        Err(error) => Err(BuildError(format!("{}: {}", source_name(source), describe_pem_error(&error)))),
    }
}

fn key(source: &PemSource) -> Result<PrivateKeyDer<'static>, BuildError> {
    PrivateKeyDer::from_pem_slice(&read_source(source)?).map_err(|error| match error {
        PemError::NoItemsFound => {
            BuildError(format!("{} contains no unencrypted PEM private key", source_name(source)))
        }
        error => BuildError(format!("{}: {}", source_name(source), describe_pem_error(&error))),
    })
}

fn read_source(source: &PemSource) -> Result<Cow<'_, [u8]>, BuildError> {
    match source {
        PemSource::Inline(text) => Ok(Cow::Borrowed(text.reveal().as_bytes())),
        PemSource::File(path) => fs::read(path)
            .map(Cow::Owned)
            .map_err(|error| BuildError(format!("failed to read {}: {error}", path.display()))),
    }
}

/// A fixed description: the parser's message may repeat a line of the file, and the file may be a key.
fn describe_pem_error(error: &PemError) -> &'static str {
    match error {
        PemError::MissingSectionEnd { .. } => "a PEM section does not end",
        PemError::IllegalSectionStart { .. } => "a PEM section has an invalid first line",
        PemError::Base64Decode(_) => "a PEM section is not valid base64",
        PemError::SectionTooLarge => "a PEM section is too large",
        _ => "not valid PEM",
    }
}
