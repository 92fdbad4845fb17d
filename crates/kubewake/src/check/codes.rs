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
    KW103 "its version is supported",
    KW111 "you may install Kubewake",
    KW201 "the kinds are installed",
    KW202 "they are of this version",
    KW301 "the operator runs",
    KW302 "one operator leads",
    KW303 "it may do what it has to",
    KW401 "the operator's webhook is registered",
    KW402 "its certificate is good",
    KW403 "it answers",
    KW404 "it is asked about pipelines",
    KW411 "the trail webhook is registered",
    KW412 "its certificate is good",
    KW413 "it answers",
    KW414 "it records spans",
    KW501 "there is a pipeline",
    KW502 "it is accepted",
    KW503 "the collectors go by it",
    KW504 "it has collectors",
    KW505 "it delivers",
    KW601 "collectors run",
    KW602 "they say how they are",
    KW603 "they take the document",
    KW604 "they are of this version",
    KW701 "a span is taken",
    KW702 "it reaches the backend",
    KW801 "the viewer answers",
    KW802 "it has room",
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
