//! The canonical codes of gRPC, which are also the vocabulary between components.

use std::fmt;

use http::StatusCode;

/// A gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // The names are gRPC's own.
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// All of them, each at the place of its number.
    pub const ALL: [Code; 17] = [
        Code::Ok,
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// The code of a `grpc-status` value; a number that gRPC does not know is `Unknown`.
    pub fn from_number(number: u32) -> Code {
        usize::try_from(number).ok().and_then(|i| Self::ALL.get(i)).copied().unwrap_or(Code::Unknown)
    }

    /// The number in `grpc-status`.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its name in gRPC's own documents and in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// Whether the OTLP specification lets a client send the same request again. `ResourceExhausted` counts only
    /// with a hint from the server that recovery is possible.
    pub fn is_retryable(self, hinted: bool) -> bool {
        match self {
            Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss => true,
            Code::ResourceExhausted => hinted,
            _ => false,
        }
    }

    /// Whether the code speaks of what was sent, rather than of who sent it and where. A batch that is refused with
    /// such a code may hold one bad request among good ones.
    pub fn blames_data(self) -> bool {
        !matches!(
            self,
            Code::Unauthenticated
                | Code::PermissionDenied
                | Code::Unimplemented
                | Code::NotFound
                | Code::FailedPrecondition
        )
    }

    /// The HTTP status that OTLP/HTTP answers for it.
    pub fn http_status(self) -> StatusCode {
        match self {
            Code::Ok => StatusCode::OK,
            Code::InvalidArgument => StatusCode::BAD_REQUEST,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::Unimplemented => StatusCode::NOT_FOUND,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            code if code.is_retryable(false) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why two ends do not agree on TLS, by whom it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate is of an authority that is not known here.
    UnknownAuthority,
    /// It has expired, or is not valid yet.
    Expired,
    /// It is for another name.
    WrongName,
    /// It cannot be used for another reason.
    InvalidCertificate,
    /// The other end does not want to go on.
    Refused,
    /// The other end wants a certificate of ours, and there is none.
    CertificateWanted,
    /// The other end does not speak TLS.
    NoTls,
    /// The other end hangs up when TLS begins, as one that does not speak it does, and others do.
    PerhapsNoTls,
    /// The other end speaks TLS, and this one does not.
    Wanted,
    /// The other end hangs up before it has said anything, as one that expects TLS does, and others do.
    PerhapsWanted,
    /// Something else.
    Other,
}

impl TlsFault {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownAuthority => "unknown_authority",
            Self::Expired => "expired",
            Self::WrongName => "wrong_name",
            Self::InvalidCertificate => "invalid_certificate",
            Self::Refused => "refused",
            Self::CertificateWanted => "certificate_wanted",
            Self::NoTls => "no_tls",
            Self::PerhapsNoTls => "perhaps_no_tls",
            Self::Wanted => "wanted",
            Self::PerhapsWanted => "perhaps_wanted",
            Self::Other => "other",
        }
    }
}

/// Why no destination is known, by whom it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolverFault {
    /// Whoever should know did not answer, or cannot be reached.
    NoAnswer,
    /// It does not know the name, or cannot tell.
    Failed,
    /// It does not want to tell us.
    Refused,
    /// It says that there is none.
    Empty,
}

impl ResolverFault {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoAnswer => "no_answer",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Empty => "empty",
        }
    }
}

/// Why there is no connection to a destination, by whom it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFault {
    /// Nobody listens there, or a firewall rejects it.
    Refused,
    /// There is no such host name.
    NameNotFound,
    /// No name server answered for the host name.
    DnsFailed,
    /// Nothing came back.
    Timeout,
    /// No route leads there.
    Unreachable,
}

impl ConnectFault {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NameNotFound => "name_not_found",
            Self::DnsFailed => "dns_failed",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
        }
    }
}

/// What a destination answered with, as it stood on the wire, or why there is no connection or no TLS with it, or why none is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// A gRPC status.
    Grpc(Code),
    /// An HTTP status.
    Http(StatusCode),
    /// No answer, since there is no connection.
    Connect(ConnectFault),
    /// No answer, since there is no trust.
    Tls(TlsFault),
    /// No answer, since nobody knows whom to ask.
    Resolver(ResolverFault),
}

impl fmt::Display for Said {
    /// `grpc:16`, `http:401`, `connect:refused`, `tls:expired`, `resolver:empty`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Grpc(code) => write!(f, "grpc:{}", code.number()),
            Said::Http(status) => write!(f, "http:{}", status.as_u16()),
            Said::Connect(fault) => write!(f, "connect:{}", fault.name()),
            Said::Tls(fault) => write!(f, "tls:{}", fault.name()),
            Said::Resolver(fault) => write!(f, "resolver:{}", fault.name()),
        }
    }
}
