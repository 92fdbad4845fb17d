//! The codes of all checks. A code never changes its meaning, and is never reused.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckCode {
    pub(super) id: &'static str,
    /// The statement that holds if the check passes.
    pub(super) title: &'static str,
}

macro_rules! codes {
    ($($id:ident $title:literal),+ $(,)?) => {
        $(pub(super) const $id: CheckCode = CheckCode { id: stringify!($id), title: $title };)+

        #[cfg(test)]
        const ALL: &[CheckCode] = &[$($id),+];
    };
}

codes! {
    KW101 "a kubeconfig names a cluster",
    KW102 "the API server answers",
    KW103 "the version of the API server is supported",
    KW111 "you may install Kubewake",
    KW201 "the CRDs are installed",
    KW202 "the CRDs match this version",
    KW301 "the operator runs",
    KW302 "one operator leads",
    KW303 "the operator has its permissions",
    KW401 "the operator's webhook is registered",
    KW402 "the certificate of the operator's webhook is valid",
    KW403 "the operator's webhook answers",
    KW404 "the API server calls the operator's webhook",
    KW411 "the trail webhook is registered",
    KW412 "the certificate of the trail webhook is valid",
    KW413 "the trail webhook answers",
    KW414 "the trail webhook records spans",
    KW501 "a pipeline exists",
    KW502 "the pipeline is accepted",
    KW503 "the collectors use the pipeline's configuration",
    KW504 "the pipeline has collectors",
    KW505 "the pipeline delivers",
    KW601 "collectors run",
    KW602 "the collectors report their status",
    KW603 "the collectors accept their configuration",
    KW604 "the collectors have this version",
    KW701 "a collector accepts a span",
    KW702 "the span reaches the backend",
    KW801 "the viewer answers",
    KW802 "the viewer has room for traces",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_document_with_its_title() {
        let document = include_str!("../../../../docs/troubleshooting.md");
        for code in ALL {
            assert!(document.contains(&format!("| `{}` | {} |", code.id, code.title)), "{code:?}");
        }
        let told = document.lines().filter(|line| line.starts_with("| `KW")).count();
        assert_eq!(told, ALL.len(), "and there are no others");
    }
}
