-- Texts are compared byte by byte: the order of a list does not depend on the locale of the database.

-- The one store of this database. There is no row until it is created, or restored from a backup.
CREATE TABLE store (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    history uuid NOT NULL,
    -- Whether it is being migrated into this database, and is not whole: no server opens it.
    filling boolean NOT NULL DEFAULT false
);

-- What changes about the store.
CREATE TABLE store_facts (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- How long the store was served, in milliseconds.
    age bigint NOT NULL DEFAULT 0,
    -- Whether calls need a token, also where no token is left.
    tokens_needed boolean NOT NULL DEFAULT false,
    -- How often a token was made or ended.
    tokens bigint NOT NULL DEFAULT 0,
    -- How often a server joined the others.
    joined bigint NOT NULL DEFAULT 0,
    -- The bucket that has the bytes of chunks; without one they are here.
    blobs text
);

-- Which servers can use these tables: those that know at least this version of them. Every transaction that writes looks here.
CREATE TABLE table_versions (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    oldest integer NOT NULL
);

INSERT INTO table_versions (oldest) VALUES (1);

-- Refuses a transaction of a server that knows the tables up to this version alone.
CREATE FUNCTION check_tables(known integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Held to the end of the transaction; `require_tables` waits for all that hold it.
    PERFORM pg_advisory_xact_lock_shared(71820018006351);
    IF (SELECT oldest > known FROM table_versions) THEN
        RAISE EXCEPTION 'the tables were migrated, and a server that knows them up to version % cannot use them', known
            USING ERRCODE = 'XK002';
    END IF;
END $$;

-- The servers on this store. One lives until its time is over, by the clock of the database.
CREATE TABLE servers (
    id uuid PRIMARY KEY,
    -- The newest version of the tables that it knows.
    knows integer NOT NULL,
    -- Where the others reach it, and what they prove to it that they are on the same store with.
    address text,
    secret text NOT NULL,
    until timestamptz NOT NULL
);

-- A migration that older servers cannot live with begins with this, in its own transaction: it fails while one of them lives, and keeps
-- them away afterwards.
CREATE FUNCTION require_tables(version integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    older record;
    tries integer := 0;
BEGIN
    -- Nobody writes or joins meanwhile. Whoever wants to waits behind this, and so this waits for a moment at a time.
    PERFORM set_config('lock_timeout', '500ms', true);
    LOOP
        BEGIN
            PERFORM pg_advisory_xact_lock(71820018006351);
            LOCK TABLE servers IN SHARE ROW EXCLUSIVE MODE;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            tries := tries + 1;
            IF tries = 20 THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(2);
        END;
    END LOOP;
    SELECT count(*) AS servers, min(knows) AS knows, ceil(extract(epoch FROM max(until) - clock_timestamp())) AS seconds
        INTO older FROM servers WHERE until > clock_timestamp() AND knows < version;
    IF older.servers > 0 THEN
        RAISE EXCEPTION '% servers that know the tables up to version % count as alive, and cannot use those of version %; hint: stop them, or if they were killed wait % seconds, and start again',
            older.servers, older.knows, version, older.seconds;
    END IF;
    UPDATE table_versions SET oldest = version;
END $$;

-- Who serves a workspace, through which server; without a row, nobody does.
CREATE TABLE leases (
    workspace text COLLATE "C" PRIMARY KEY,
    epoch bigint NOT NULL,
    server uuid NOT NULL,
    agent text NOT NULL,
    -- In milliseconds since 1970.
    since bigint NOT NULL,
    presence bytea NOT NULL
);

-- What changes with every batch is side by side: an update logs the bytes from the first that changed to the last.
CREATE TABLE workspaces (
    name text COLLATE "C" PRIMARY KEY,
    -- Distinguishes workspaces of one name of which the earlier ones were deleted.
    born uuid NOT NULL DEFAULT gen_random_uuid(),
    -- Whether a batch or an agent made it known; an upload alone does not.
    known boolean NOT NULL DEFAULT false,
    -- Whether it is being deleted, and what is reported of that.
    deleting boolean NOT NULL DEFAULT false,
    deleted_batches bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    secret bytea,
    roots bytea,
    sessions bigint NOT NULL DEFAULT 0,
    -- The last event that was removed, with the digest of its commit.
    trimmed bigint NOT NULL DEFAULT 0,
    trimmed_digest bytea,
    -- No batch that was stored up to here has content that could still be removed.
    swept bigint NOT NULL DEFAULT 0,
    notes bytea,
    digest bytea,
    newest bigint NOT NULL DEFAULT 0,
    open_batches bigint NOT NULL DEFAULT 0,
    used_bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE INDEX workspaces_deleting ON workspaces (name) WHERE deleting;

-- A batch as it was stored, with its first event: `content`, `progress` and `event` are records with a checksum, what is beside them is
-- what they are found by. Only retention changes a row: a step logs nothing of the content.
CREATE TABLE batches (
    first bigint NOT NULL,
    id uuid PRIMARY KEY,
    is_open boolean NOT NULL,
    has_content boolean NOT NULL,
    -- Whether retention could not read it.
    damaged boolean NOT NULL DEFAULT false,
    workspace text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL,
    session text COLLATE "C",
    hunk uuid,
    reverts uuid,
    replaces uuid,
    -- NULL where the event is in `events`.
    event bytea,
    -- NULL where the batch has a row in `batch_states` from the start, or from the removal of its content on.
    progress bytea,
    content bytea NOT NULL
);

-- That no two events have one revision, and no two batches one request, is kept by the lock of the workspace's row alone.
-- Two parts, each in the order of revisions: retention finds what has content without a look at what has none, and a new batch has an
-- entry in one of them.
CREATE UNIQUE INDEX batches_with_content ON batches (workspace, first) WHERE has_content;
CREATE UNIQUE INDEX batches_without_content ON batches (workspace, first) WHERE NOT has_content;
-- A hash takes less room than the names do, and random names do not split so many pages. Each look compares the names as well.
CREATE INDEX batches_requested ON batches (hashtextextended(workspace || ' ' || request, 0));
CREATE INDEX batches_reverting ON batches (reverts) WHERE reverts IS NOT NULL;
CREATE INDEX batches_replacing ON batches (replaces) WHERE replaces IS NOT NULL;
CREATE INDEX batches_damaged ON batches (workspace) WHERE damaged;

-- The state of a batch, from its first change on; from the start if more is to be found of it than a new batch has.
CREATE TABLE batch_states (
    newest bigint NOT NULL,
    expires bigint,
    id uuid PRIMARY KEY,
    reverted_by uuid,
    is_open boolean NOT NULL,
    -- Whether it is a prepared batch that failed: a plan that was refused.
    is_refused boolean NOT NULL,
    freed text COLLATE "C",
    progress bytea NOT NULL
);

CREATE INDEX batch_states_due ON batch_states (expires, id) WHERE expires IS NOT NULL;

-- Batches as they are now.
CREATE VIEW current_batches AS
    SELECT b.id, b.workspace, b.first, b.request, b.session, b.hunk, b.reverts, b.replaces, b.has_content, b.damaged, b.content,
        coalesce(s.newest, b.first) AS newest, coalesce(s.is_open, b.is_open) AS is_open,
        coalesce(s.is_refused, false) AS is_refused, s.freed, s.reverted_by, coalesce(s.progress, b.progress) AS progress
    FROM batches b LEFT JOIN batch_states s ON s.id = b.id;

-- The batches of a session that may be being applied, by their first revisions.
CREATE TABLE in_flight (
    first bigint NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL
);

CREATE INDEX in_flight_of_sessions ON in_flight (hashtextextended(workspace || ' ' || session, 0), first);

-- The events that are not in the row of their batch: those after its first.
CREATE TABLE events (
    revision bigint NOT NULL,
    -- The event before of the same batch.
    previous bigint,
    batch uuid NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (workspace, revision)
);

-- Every event. That of a batch is there as long as the batch: up to `workspaces.trimmed` events count as removed.
CREATE VIEW all_events AS
    SELECT workspace, first AS revision, id AS batch, NULL::bigint AS previous, event AS record
        FROM batches WHERE has_content AND event IS NOT NULL
    UNION ALL SELECT workspace, first, id, NULL, event FROM batches WHERE NOT has_content AND event IS NOT NULL
    UNION ALL SELECT workspace, revision, batch, previous, record FROM events;

-- The requests that had prepared batches applied; that which a batch was stored by is in its row.
CREATE TABLE freed_requests (
    workspace text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL,
    batch uuid NOT NULL,
    PRIMARY KEY (workspace, request)
);

-- The newest batch of a plan, once another batch took the place of the first.
CREATE TABLE hunks (
    workspace text COLLATE "C" NOT NULL,
    hunk uuid NOT NULL,
    batch uuid NOT NULL,
    PRIMARY KEY (workspace, hunk)
);

CREATE TABLE sessions (
    workspace text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (workspace, session)
);

-- A path may be longer than an entry of an index: files are found by a digest of it, and sorted by how it begins.
CREATE TABLE files (
    workspace text COLLATE "C" NOT NULL,
    path bytea NOT NULL,
    doc_path bytea NOT NULL,
    digest bytea NOT NULL,
    record bytea NOT NULL
);

-- Every file is in each of these. PostgreSQL uses one for a statement with its condition alone: where it believes that there are a few
-- files, it would as soon find one by another index, past all files of its workspace, and stay with that when there are many.
CREATE UNIQUE INDEX files_by_path ON files (workspace, sha256(path)) WHERE path <> '';
CREATE INDEX files_by_key ON files (workspace, sha256(doc_path)) WHERE doc_path <> '';
CREATE INDEX files_in_order ON files (workspace, substring(path FROM 1 FOR 1000)) WHERE workspace <> '';

CREATE TABLE tokens (
    name text COLLATE "C" PRIMARY KEY,
    -- The one workspace that it is for.
    workspace text COLLATE "C",
    -- SHA-256 of what proves who its holder is: of its secret, or of the name of a certificate.
    proof bytea NOT NULL,
    record bytea NOT NULL
);

CREATE INDEX tokens_of_proof ON tokens (proof);
CREATE INDEX tokens_of_one ON tokens (workspace) WHERE workspace IS NOT NULL;

-- `names` counts the batches and the files that name the blob; `seen` is until when it stays although none does, in
-- milliseconds since 1970.
CREATE TABLE blobs (
    workspace text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    upload uuid NOT NULL,
    size bigint NOT NULL,
    names bigint NOT NULL DEFAULT 0,
    seen bigint NOT NULL,
    PRIMARY KEY (workspace, digest)
);

CREATE INDEX blobs_of_uploads ON blobs (upload);
CREATE INDEX blobs_unnamed ON blobs (seen, workspace, digest) WHERE names = 0;

CREATE TABLE batch_blobs (
    batch uuid NOT NULL,
    digest bytea NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (batch, digest)
);

-- An upload that is not a blob yet. One with a workspace can be resumed, the others are removed with time; one that is dropped is
-- only still there until its chunks are removed, which they may be from `removable` on. `writer` names the server that writes it: no other one adds chunks or ends it.
CREATE TABLE uploads (
    id uuid PRIMARY KEY,
    workspace text COLLATE "C",
    digest bytea,
    size bigint NOT NULL DEFAULT 0,
    seen bigint NOT NULL DEFAULT 0,
    writer uuid,
    touched timestamptz NOT NULL DEFAULT now(),
    dropped boolean NOT NULL DEFAULT false,
    removable timestamptz
);

CREATE UNIQUE INDEX uploads_of_blobs ON uploads (workspace, digest) WHERE workspace IS NOT NULL;
CREATE INDEX uploads_unclaimed ON uploads (touched) WHERE workspace IS NULL AND NOT dropped;
CREATE INDEX uploads_dropped ON uploads (removable, id) WHERE dropped;
CREATE INDEX uploads_seen ON uploads (seen) WHERE workspace IS NOT NULL;

-- The bytes of a chunk are here, or in the object of the bucket that ends with this number.
CREATE TABLE chunks (
    upload uuid NOT NULL,
    index bigint NOT NULL,
    size bigint NOT NULL,
    bytes bytea,
    object uuid,
    CHECK (num_nonnulls(bytes, object) = 1),
    PRIMARY KEY (upload, index)
);

-- Ends the transaction of a group whose rows are not as the server expects them. Its statements are sent together, so that those behind
-- a BEGIN that failed would each be a transaction of its own: then it has them all fail, and the server gives up the connection.
CREATE FUNCTION check_known(is_known boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('aptix.grouped', true) IS DISTINCT FROM 'on' THEN
        PERFORM set_config('default_transaction_read_only', 'on', false);
        -- An error would undo that.
        RETURN;
    END IF;
    IF is_known IS NOT TRUE THEN
        RAISE EXCEPTION 'a row is not as the server expects it' USING ERRCODE = 'XK001';
    END IF;
END $$;
