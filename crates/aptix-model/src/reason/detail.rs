//! The finer words of the catalogue.

use super::catalogue::catalogue;

catalogue! {
    /// The finer word beside a `Reason`.
    Detail {
        /// A path, a document or a list that must hold something is empty.
        Empty = "EMPTY",
        /// A path has a `..` component.
        Traversal = "TRAVERSAL",
        /// A path has a `.` component.
        DotSegment = "DOT_SEGMENT",
        /// A path has an empty component.
        EmptySegment = "EMPTY_SEGMENT",
        /// A path starts at the root of the file system.
        Absolute = "ABSOLUTE",
        /// A path names a network share.
        Unc = "UNC",
        /// A path names a Windows device namespace.
        Device = "DEVICE",
        /// A path starts with a drive letter.
        Drive = "DRIVE",
        /// A path has a backslash where only `/` separates.
        Backslash = "BACKSLASH",
        /// A path has a NUL byte.
        Nul = "NUL",
        /// A path has a control character.
        Control = "CONTROL",
        /// A path has a character that reorders text.
        Bidi = "BIDI",
        /// A name begins or ends with a blank, or ends with a dot.
        SpaceDot = "SPACE_DOT",
        /// A name has a character that some systems forbid.
        Char = "CHAR",
        /// A name is a Windows device.
        Reserved = "RESERVED",
        /// A name has a colon: a drive or a stream.
        Colon = "COLON",
        /// A path begins with `~`, which shells expand.
        Tilde = "TILDE",
        /// A path has a character that looks like a dot or a slash.
        Confusable = "CONFUSABLE",
        /// A path or a name is too long.
        TooLong = "TOO_LONG",
        /// A path has too many components.
        TooDeep = "TOO_DEEP",
        /// A document path is not lower-case.
        NotLowercase = "NOT_LOWERCASE",
        /// A path does not begin with the name of a root of this workspace, or has nothing after it.
        UnknownRoot = "UNKNOWN_ROOT",
        /// A document names a root of its own.
        Root = "ROOT",
        /// A component that must be a directory is not.
        NotDirectory = "NOT_DIRECTORY",
        /// The target is not a regular file.
        NotRegular = "NOT_REGULAR",
        /// A symbolic link leads out of the root, nowhere, or in a circle.
        Symlink = "SYMLINK",
        /// The target lies on another file system than its root.
        CrossDevice = "CROSS_DEVICE",
        /// Two paths differ only in case.
        CaseCollision = "CASE_COLLISION",
        /// Two paths differ only in Unicode normal form.
        NormCollision = "NORM_COLLISION",
        /// The file belongs to version control or to Aptix itself.
        Protected = "PROTECTED",
        /// The file holds secrets.
        Secret = "SECRET",
        /// Nothing of the file's content is shown to a server or a tool, and the edit would compare it or take it along.
        Withheld = "WITHHELD",
        /// Git, or a file `.ignore`, ignores the file, and so no server reads it.
        Ignored = "IGNORED",
        /// The file is not among those that `reads` of the policy lets servers read.
        Reads = "READS",
        /// The policy shows a server nothing of a file before a person has agreed to a batch.
        Unapproved = "UNAPPROVED",
        /// The ignore rules above the file cannot be read, and so no server reads it.
        Unknown = "UNKNOWN",
        /// The file controls an editor, an agent, a build service or version control.
        Sensitive = "SENSITIVE",
        /// A list in a policy file denies the file.
        Denied = "DENIED",
        /// A list in a policy file has the file as one to ask about.
        Listed = "LISTED",
        /// The file has other names, which a policy may deny.
        HardLinked = "HARD_LINKED",
        /// What was agreed to is not what would be written now.
        Changed = "CHANGED",
        /// The file would be deleted.
        Deletion = "DELETION",
        /// No person looked at the batch: the agent was started to refuse all of them.
        NeverApproves = "NEVER_APPROVES",
        /// A policy file says that nothing is written for any batch, or the session is RESTRICTED.
        RestrictedMode = "RESTRICTED_MODE",
        /// A policy file cannot be read or understood, so nothing is written.
        PolicyFile = "POLICY_FILE",
        /// Not a SHA-256 in hex.
        ShaFormat = "SHA_FORMAT",
        /// No line is, or several lines are, what an anchor describes.
        Anchor = "ANCHOR",
        /// There are fewer lines that an anchor describes than the occurrence says.
        Occurrence = "OCCURRENCE",
        /// Not a regular expression.
        Regex = "REGEX",
        /// Content of undeclared format that looks like a diff.
        LooksLikeDiff = "LOOKS_LIKE_DIFF",
        /// Content that is one fenced block, fences included.
        Fenced = "FENCED",
        /// New conflict markers at the start of lines.
        ConflictMarkers = "CONFLICT_MARKERS",
        /// A comment in the place of lines that were left out.
        Elision = "ELISION",
        /// A content format that is not known.
        ContentFormat = "CONTENT_FORMAT",
        /// A batch that is not prepared, or is not any more.
        NotPrepared = "NOT_PREPARED",
        /// A prepared edit of another kind.
        OtherKind = "OTHER_KIND",
        /// A required value is absent.
        Missing = "MISSING",
        /// A value has the wrong type.
        Type = "TYPE",
        /// The text is not well-formed JSON.
        Json = "JSON",
        /// A number that JSON or the field cannot hold.
        Number = "NUMBER",
        /// The text is not well-formed Unicode.
        Unicode = "UNICODE",
        /// JSON nested deeper than any document needs.
        Depth = "DEPTH",
        /// Text after the end of the document.
        Trailing = "TRAILING",
        /// A fenced block of an answer has no closing fence or a tag that edits do not have, or what may be an edit is
        /// outside of all blocks.
        Fence = "FENCE",
        /// More than one document where one is read.
        MultipleBlocks = "MULTIPLE_BLOCKS",
        /// The same key occurs twice in one object, or names two entries of one list.
        DuplicateKey = "DUPLICATE_KEY",
        /// A key that the format does not have.
        UnknownField = "UNKNOWN_FIELD",
        /// A key that belongs to another operation.
        UnexpectedField = "UNEXPECTED_FIELD",
        /// An operation that the format does not have.
        UnknownOperation = "UNKNOWN_OPERATION",
        /// An enum value that this version does not know.
        UnknownEnum = "UNKNOWN_ENUM",
        /// The document is in no dialect that is understood here.
        UnknownDialect = "UNKNOWN_DIALECT",
        /// One file is named twice.
        DuplicatePath = "DUPLICATE_PATH",
        /// A file is renamed to itself, or copied from itself.
        NoOp = "NO_OP",
        /// Text in a diff that is no part of a diff.
        Garbage = "GARBAGE",
        /// The names in a diff do not say which file is meant, or contradict each other.
        Names = "NAMES",
        /// The names in a diff come without the prefixes `a/` and `b/`.
        Prefix = "PREFIX",
        /// A file name in quotes is not written as git writes it.
        Quote = "QUOTE",
        /// A file mode that is none, or not one of a file that can be written here.
        Mode = "MODE",
        /// A submodule.
        Submodule = "SUBMODULE",
        /// A kind of diff that is not read.
        Format = "FORMAT",
        /// The hunks of a file overlap, or are not listed top to bottom.
        HunkOrder = "HUNK_ORDER",
        /// The numbers of lines that a hunk header states are wrong.
        Counts = "COUNTS",
        /// A hunk is elsewhere than its header says.
        Offset = "OFFSET",
        /// A hunk has no lines that tell its place.
        NoContext = "NO_CONTEXT",
        /// Lines that end differently than those of the file.
        LineEndings = "LINE_ENDINGS",
        /// A line that a hunk of this kind does not have.
        LineKind = "LINE_KIND",
        /// A line without terminator that is not the last one of its file.
        EndOfFile = "END_OF_FILE",
        /// Two paths lead to one file.
        DuplicateFile = "DUPLICATE_FILE",
        /// One path is both a file and a directory.
        PrefixConflict = "PREFIX_CONFLICT",
        /// A marker line of a patch is missing, or is where none belongs.
        Marker = "MARKER",
        /// A line of a patch does not say whether it stays, goes or comes.
        LinePrefix = "LINE_PREFIX",
        /// The header of a hunk is not in the form that its dialect has.
        HunkHeader = "HUNK_HEADER",
        /// There are not as many expected lines as the range has.
        ExpectedCount = "EXPECTED_COUNT",
        /// An insert without lines.
        EmptyNewLines = "EMPTY_NEW_LINES",
        /// A replace without lines: that is a delete.
        UseDelete = "USE_DELETE",
        /// A text to search for that is empty.
        EmptyFind = "EMPTY_FIND",
        /// A clipboard's name that is empty, too long or not printable.
        ClipboardName = "CLIPBOARD_NAME",
        /// A line with a line feed in it.
        EmbeddedNewline = "EMBEDDED_NEWLINE",
        /// A line with a carriage return in it.
        EmbeddedCr = "EMBEDDED_CR",
        /// A new line 1 that begins with U+FEFF, which would become the file's byte order mark.
        EmbeddedBom = "EMBEDDED_BOM",
        /// A request id that is empty, too long or not printable.
        RequestId = "REQUEST_ID",
        /// An id that is not in the form its kind has.
        IdFormat = "ID_FORMAT",
        /// A page size or page token that this server did not give.
        Page = "PAGE",
        /// An upload that is resumed behind what the server has of it.
        UploadOffset = "UPLOAD_OFFSET",
        /// A revision that does not exist yet.
        FutureRevision = "FUTURE_REVISION",
        /// A feature that the edit requires, and that this version does not have.
        UnknownFeature = "UNKNOWN_FEATURE",
        /// An answer to a question that is not open.
        UnknownQuestion = "UNKNOWN_QUESTION",
        /// No agent that can answer serves the workspace.
        NoAgent = "NO_AGENT",
        /// A batch that is stored and had not ended when its caller's time was over.
        Pending = "PENDING",
        /// The agent went before it answered.
        AgentLost = "AGENT_LOST",
        /// The agent's answer does not fit the question.
        WrongAnswer = "WRONG_ANSWER",
        /// A line number of zero.
        Zero = "ZERO",
        /// A negative line number.
        Negative = "NEGATIVE",
        /// A line number beyond 2,147,483,647.
        Overflow = "OVERFLOW",
        /// A range that ends before it starts.
        Inverted = "INVERTED",
        /// A line number past the end of the file.
        PastEnd = "PAST_END",
        /// UTF-16 or another encoding that is not a superset of ASCII.
        Encoding = "ENCODING",
        /// The file has NUL bytes.
        Binary = "BINARY",
        /// Too many files.
        Files = "FILES",
        /// Too many changes.
        Changes = "CHANGES",
        /// Too many tokens for one patch.
        Tokens = "TOKENS",
        /// A clipboard's text is too large, or a session has too many clipboards.
        Clipboard = "CLIPBOARD",
        /// A label, key or description is too long.
        Text = "TEXT",
        /// One line is too long.
        Line = "LINE",
        /// A file or its content is too large.
        File = "FILE",
        /// A document is too large.
        Document = "DOCUMENT",
        /// A gRPC message is too large.
        Message = "MESSAGE",
        /// No space is left on the device.
        NoSpace = "NO_SPACE",
        /// The quota is used up.
        Quota = "QUOTA",
        /// The file system is read-only.
        ReadOnly = "READ_ONLY",
        /// The system denies access.
        Permission = "PERMISSION",
        /// The file is immutable or append-only.
        Immutable = "IMMUTABLE",
        /// Too many open files.
        Fds = "FDS",
        /// The device failed.
        Io = "IO",
        /// Everything was put back after a failure half-way.
        RolledBack = "ROLLED_BACK",
        /// A directory vanished while the batch was being applied.
        ParentGone = "PARENT_GONE",
        /// Another agent serves the workspace.
        LeaseHeld = "LEASE_HELD",
        /// A newer connection of the same agent took over.
        Superseded = "SUPERSEDED",
        /// An event of a stream is not the next one: events are missing, repeated, or in another order.
        EventOrder = "EVENT_ORDER",
        /// The receiver was too slow to keep up.
        SlowConsumer = "SLOW_CONSUMER",
        /// The server is shutting down.
        ShuttingDown = "SHUTTING_DOWN",
    }
}
