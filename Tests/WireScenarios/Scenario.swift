import Testing

/// One conversation with a server, in a container of its own.
package struct Scenario: Sendable {
    package let name: String
    package let body: @Sendable (Caller) async throws -> Void

    package init(_ name: String, _ body: @escaping @Sendable (Caller) async throws -> Void) {
        self.name = name
        self.body = body
    }

    package func run(over wire: any Wire) async throws {
        try await self.body(Caller(wire: wire, container: try await wire.makeContainer()))
    }

    package static let all =
        Scenario.rules + Scenario.checklist + Scenario.decisions + Scenario.tolerances
        + Scenario.sentences + Scenario.faults + Scenario.promises + Scenario.engines
        + Scenario.shares
}

extension Scenario {
    /// Those of containers whose schema grows by saving.
    package static let growing = [Scenario.newParents, Scenario.grownLikeKnown]

    /// Whether the scenario also holds if every default zone is the public one; see ``InPublic``.
    /// The others tell public from private.
    package var isAlsoOfPublicRecords: Bool {
        ![
            "rule 9:", "rule 19:", "whole 421, 401:", "the zone of the records counts",
            "zoneWide asks", "Photos:", "a marker is good for", "§4.2, §4.6:", "X-04:", "share:",
            "check 20:", "engines:",
        ].contains { self.name.hasPrefix($0) }
    }
}

extension Scenario: CustomTestStringConvertible {
    package var testDescription: String { self.name }
}

/// The schema of the scenarios' containers.
package enum Library {
    package static let schema = """
        DEFINE SCHEMA

            RECORD TYPE Book (
                "___createTime" TIMESTAMP QUERYABLE SORTABLE,
                "___createdBy"  REFERENCE QUERYABLE,
                "___modTime"    TIMESTAMP QUERYABLE SORTABLE,
                "___modifiedBy" REFERENCE QUERYABLE,
                "___parent"     REFERENCE QUERYABLE,
                "___recordID"   REFERENCE QUERYABLE,
                "___share"      REFERENCE QUERYABLE,
                author          REFERENCE QUERYABLE,
                authors         LIST<REFERENCE> QUERYABLE,
                code            BYTES QUERYABLE,
                codes           LIST<BYTES> QUERYABLE,
                counts          LIST<INT64> QUERYABLE,
                cover           ASSET,
                dates           LIST<TIMESTAMP> QUERYABLE,
                digest          BYTES,
                digests         LIST<BYTES>,
                note            STRING,
                pages           INT64 QUERYABLE SORTABLE,
                place           LOCATION QUERYABLE SORTABLE,
                places          LIST<LOCATION>,
                published       TIMESTAMP QUERYABLE SORTABLE,
                rating          DOUBLE QUERYABLE SORTABLE,
                ratios          LIST<DOUBLE> QUERYABLE,
                secret          ENCRYPTED STRING,
                spots           LIST<LOCATION> QUERYABLE,
                tags            LIST<STRING> QUERYABLE,
                title           STRING QUERYABLE SORTABLE SEARCHABLE,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world"
            );

            RECORD TYPE Diary (
                "___recordID" REFERENCE QUERYABLE,
                title         STRING QUERYABLE,
                GRANT READ, WRITE TO "_creator",
                GRANT CREATE TO "_icloud"
            );

            RECORD TYPE Author (
                "___recordID" REFERENCE,
                name          STRING QUERYABLE SORTABLE,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world"
            );
        """
}
