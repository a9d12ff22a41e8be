"""Drives a running server through pyicloud's CloudKit client, which knows nothing of Stratus.

Prints one PASS or FAIL line for each step and exits with 1 if any failed.
Arguments: the server's URL and an API token.
"""

import os
import sys
import uuid

import requests
from pyicloud.common.cloudkit.client import CloudKitApiError, CloudKitContainerClient
from pyicloud.common.cloudkit.models import (
    CKModifyOperation,
    CKQueryFilterBy,
    CKQueryObject,
    CKQuerySortBy,
    CKTombstoneRecord,
    CKWriteRecord,
    CKZoneChangesZoneReq,
    CKZoneID,
    CKZoneIDReq,
)

URL, API_TOKEN = sys.argv[1:3]
STRICT = "PYICLOUD_STRICT" in os.environ
CONTAINER = f"iCloud.org.example.clients.{uuid.uuid4().hex[:12]}"
ZONE_NAME = "Shelves"
ZONE = CKZoneIDReq(zoneName=ZONE_NAME)


def client(database, **parameters):
    """A client of one database, as an app would make it; in strict mode unknown keys in answers are errors."""
    return CloudKitContainerClient(
        f"{URL}/database/1/{CONTAINER}/development/{database}",
        requests.Session(),
        {
            "ckAPIToken": API_TOKEN,
            "remapEnums": True,
            "getCurrentSyncToken": True,
            **parameters,
        },
        validation_extra="forbid" if STRICT else None,
    )


PRIVATE = client("private", ckWebAuthToken="84__31__any+token/=")
# Zones carry capabilities, and deletions a change tag, that the client's strict mode does not model.
PRIVATE_LENIENT = CloudKitContainerClient(
    f"{URL}/database/1/{CONTAINER}/development/private",
    requests.Session(),
    {"ckAPIToken": API_TOKEN, "ckWebAuthToken": "t"},
)


def somebody_else(database):
    """A client of another user. Shares have dates that the client's strict mode does not model."""
    return CloudKitContainerClient(
        f"{URL}/database/1/{CONTAINER}/development/{database}",
        requests.Session(),
        {"ckAPIToken": API_TOKEN, "ckWebAuthToken": "stratus-user-2", "getCurrentSyncToken": True},
    )


def operation(kind, name, tag=None, **fields):
    return CKModifyOperation(
        operationType=kind,
        record=CKWriteRecord(
            recordName=name,
            recordType="Book",
            recordChangeTag=tag,
            fields={
                key: {"type": kind, "value": value} for key, (kind, value) in fields.items()
            },
        ),
    )


def changes(token=None, limit=None):
    """Every change after a token, and the token after them."""
    request = CKZoneChangesZoneReq(zoneID=CKZoneID(zoneName=ZONE_NAME), syncToken=token)
    records = []
    for page in PRIVATE_LENIENT.iter_changes(zone_req=request, results_limit=limit):
        records += page.records
        token = page.syncToken
    return records, token


STEPS = []
STATE = {}


def step(function):
    STEPS.append(function)
    return function


@step
def a_zone_is_made():
    answer = PRIVATE.raw_post(
        "/zones/modify",
        {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": ZONE_NAME}}}]},
    )
    assert answer["zones"][0]["zoneID"]["zoneName"] == ZONE_NAME
    names = [zone.zoneID.zoneName for zone in PRIVATE_LENIENT.zones_list().zones]
    assert sorted(names) == [ZONE_NAME, "_defaultZone"], names


@step
def a_record_is_created():
    answer = PRIVATE.modify(
        operations=[
            operation(
                "create",
                "book-1",
                title=("STRING", "Sea Roads"),
                pages=("INT64", 9007199254740993),
                rating=("DOUBLE", 4.5),
                tags=("STRING_LIST", ["travel", "maps"]),
                published=("TIMESTAMP", 1462060800000),
                digest=("BYTES", "3q2+7w=="),
            )
        ],
        zone_id=ZONE,
        atomic=True,
    )
    record = answer.records[0]
    assert record.recordName == "book-1" and record.recordType == "Book"
    assert record.fields["pages"].unwrap().value == 9007199254740993
    assert record.created.deviceID and record.created.userRecordName
    assert answer.syncToken
    STATE["created"] = record


@step
def an_update_with_the_tag_merges():
    answer = PRIVATE.modify(
        operations=[
            operation(
                "update", "book-1", STATE["created"].recordChangeTag, pages=("INT64", 312)
            )
        ],
        zone_id=ZONE,
    )
    record = answer.records[0]
    assert record.fields["pages"].unwrap().value == 312
    assert record.fields["title"].unwrap().value == "Sea Roads"
    assert record.recordChangeTag != STATE["created"].recordChangeTag


@step
def an_update_with_the_old_tag_conflicts():
    try:
        PRIVATE.modify(
            operations=[
                operation(
                    "update", "book-1", STATE["created"].recordChangeTag, pages=("INT64", 1)
                )
            ],
            zone_id=ZONE,
        )
    except CloudKitApiError as error:
        assert "CONFLICT" in str(error), error
        entry = error.payload["records"][0]
        assert entry["recordName"] == "book-1"
        # The server's record is beside the conflict, where the client takes keys that it does not know.
        assert ("serverRecord" in entry) == (not STRICT), entry
    else:
        raise AssertionError("no conflict")


@step
def a_lookup_mixes_found_and_missing():
    answer = PRIVATE.lookup(["book-1", "ghost"], zone_id=ZONE, desired_keys=["pages"])
    assert answer.records[0].fields["pages"].unwrap().value == 312
    assert list(answer.records[0].fields.keys()) == ["pages"]
    assert answer.records[1].serverErrorCode == "NOT_FOUND"


@step
def a_query_filters_sorts_and_pages():
    PRIVATE.modify(
        operations=[
            operation("create", f"book-{number}", pages=("INT64", number * 100))
            for number in range(4, 9)
        ],
        zone_id=ZONE,
    )
    query = CKQueryObject(
        recordType="Book",
        filterBy=[
            CKQueryFilterBy(
                comparator="GREATER_THAN",
                fieldName="pages",
                fieldValue={"type": "INT64", "value": 400},
            )
        ],
        sortBy=[CKQuerySortBy(fieldName="pages", ascending=False)],
    )
    names, marker, pages = [], None, 0
    while True:
        page = PRIVATE.query(query=query, zone_id=ZONE, results_limit=2, continuation=marker)
        names += [record.recordName for record in page.records]
        marker, pages = page.continuationMarker, pages + 1
        if marker is None:
            break
    assert names == ["book-8", "book-7", "book-6", "book-5"], names
    assert pages == 2, pages
    everywhere = PRIVATE.query(query=query, zone_wide=True)
    assert len(everywhere.records) == 4
    assert PRIVATE.query_sync_token(query=query, zone_id=ZONE)


@step
def the_feed_tells_everything_then_only_what_is_new():
    records, token = changes(limit=2)
    assert [record.recordName for record in records] == [
        "book-1", "book-4", "book-5", "book-6", "book-7", "book-8",
    ]
    assert changes(token) == ([], token)
    STATE["token"] = token


@step
def a_deletion_arrives_in_the_feed():
    answer = PRIVATE.modify(operations=[operation("delete", "book-1")], zone_id=ZONE)
    assert isinstance(answer.records[0], CKTombstoneRecord)
    records, token = changes(STATE["token"])
    assert [record.recordName for record in records] == ["book-1"]
    assert isinstance(records[0], CKTombstoneRecord)
    gone = PRIVATE.lookup(["book-1"], zone_id=ZONE).records[0]
    assert gone.serverErrorCode == "NOT_FOUND"


@step
def the_database_tells_which_zone_changed():
    answer = PRIVATE_LENIENT.database_changes()
    assert [zone.zoneID.zoneName for zone in answer.zones] == [ZONE_NAME]
    assert answer.moreComing is False
    again = PRIVATE_LENIENT.database_changes(sync_token=answer.syncToken)
    assert again.zones == []


@step
def a_missing_zone_and_a_bad_token_are_errors_of_the_zone():
    for request, code in [
        (CKZoneChangesZoneReq(zoneID=CKZoneID(zoneName="Nope")), "ZONE_NOT_FOUND"),
        (
            CKZoneChangesZoneReq(zoneID=CKZoneID(zoneName=ZONE_NAME), syncToken="garbage"),
            "BAD_REQUEST",
        ),
    ]:
        try:
            PRIVATE.changes(zone_req=request)
        except CloudKitApiError as error:
            assert code in str(error), error
        else:
            raise AssertionError(f"no {code}")


@step
def the_public_database_is_readable_without_a_user_and_not_writable():
    anonymous = client("public")
    zone = CKZoneIDReq(zoneName="_defaultZone")
    signed_in = client("public", ckWebAuthToken="t")
    signed_in.modify(
        operations=[operation("create", "open", title=("STRING", "x"))], zone_id=zone
    )
    assert anonymous.lookup(["open"], zone_id=zone).records[0].recordName == "open"
    try:
        anonymous.modify(
            operations=[operation("create", "closed", title=("STRING", "x"))], zone_id=zone
        )
    except CloudKitApiError as error:
        assert error.payload["serverErrorCode"] == "AUTHENTICATION_REQUIRED", error.payload
        assert error.payload["redirectURL"]
    else:
        raise AssertionError("written without a user")


@step
def a_file_is_uploaded_saved_and_read_back():
    data = bytes(range(256)) * 3000
    token = PRIVATE.upload_asset(
        record_type="Book", field_name="cover", record_name="with a file", data=data, zone_id=ZONE
    )
    PRIVATE.modify(
        operations=[
            operation(
                "create", "with a file", title=("STRING", "x"),
                cover=("ASSETID", token.model_dump(mode="json", exclude_none=True)),
            )
        ],
        zone_id=ZONE,
    )
    cover = PRIVATE.lookup(["with a file"], zone_id=ZONE).records[0].fields["cover"].value
    assert cover.size == len(data), cover
    assert PRIVATE.download_asset_bytes(cover.downloadURL) == data
    assert b"".join(PRIVATE.download_asset_stream(cover.downloadURL)) == data


@step
def a_zone_is_shared_and_somebody_else_accepts():
    name = somebody_else("public").raw_post("/users/caller", {})["userRecordName"]
    share = PRIVATE_LENIENT.raw_post(
        "/records/modify",
        {
            "zoneID": {"zoneName": ZONE_NAME},
            "operations": [
                {
                    "operationType": "create",
                    "record": {
                        "recordType": "cloudkit.share",
                        "recordName": "cloudkit.zoneshare",
                        "participants": [
                            {
                                "permission": "READ_WRITE",
                                "userIdentity": {"userRecordName": name},
                            }
                        ],
                    },
                }
            ],
        },
    )["records"][0]
    guids = {"shortGUIDs": [{"value": share["shortGUID"]}]}
    result = somebody_else("public").raw_post("/records/accept", guids)["results"][0]
    assert result["participantStatus"] == "ACCEPTED", result
    zones = somebody_else("shared").zones_list().zones
    assert [zone.zoneID.zoneName for zone in zones] == [ZONE_NAME], zones
    STATE["shared"] = CKZoneIDReq(
        zoneName=ZONE_NAME, ownerRecordName=zones[0].zoneID.ownerRecordName
    )


@step
def somebody_else_reads_and_writes_the_shared_zone():
    shared, zone = somebody_else("shared"), STATE["shared"]
    saved = shared.modify(
        operations=[operation("create", "from-2", title=("STRING", "Low Tide"))], zone_id=zone
    )
    assert saved.records[0].recordName == "from-2" and saved.syncToken
    found = shared.lookup(["from-2", "cloudkit.zoneshare"], zone_id=zone).records
    assert found[0].fields["title"].unwrap().value == "Low Tide"
    assert [person.type for person in found[1].participants] == ["OWNER", "USER"], found[1]
    assert found[1].currentUserParticipant.acceptanceStatus == "ACCEPTED"
    assert PRIVATE.lookup(["from-2"], zone_id=ZONE).records[0].recordName == "from-2"
    request = CKZoneChangesZoneReq(
        zoneID=CKZoneID(zoneName=ZONE_NAME, ownerRecordName=zone.ownerRecordName)
    )
    names = [
        record.recordName
        for page in shared.iter_changes(zone_req=request, results_limit=3)
        for record in page.records
    ]
    assert "from-2" in names and "cloudkit.zoneshare" in names, names
    answer = shared.database_changes()
    assert [zone.zoneID.zoneName for zone in answer.zones] == [ZONE_NAME]
    assert shared.database_changes(sync_token=answer.syncToken).zones == []


@step
def who_is_removed_finds_no_zone():
    end = {"operationType": "forceDelete", "record": {"recordName": "cloudkit.zoneshare"}}
    gone = PRIVATE.raw_post(
        "/records/modify", {"zoneID": {"zoneName": ZONE_NAME}, "operations": [end]}
    )
    assert gone["records"][0]["deleted"] is True, gone
    try:
        somebody_else("shared").lookup(["from-2"], zone_id=STATE["shared"])
    except CloudKitApiError as error:
        assert "ZONE_NOT_FOUND" in str(error.payload or error), error
    else:
        raise AssertionError("still there")
    assert somebody_else("shared").zones_list().zones == []


def main():
    failed = 0
    for function in STEPS:
        name = function.__name__.replace("_", " ")
        try:
            function()
        except Exception as error:  # Whatever it is, the next step may still tell something.
            failed += 1
            payload = getattr(error, "payload", None)
            print(f"FAIL pyicloud: {name}: {type(error).__name__}: {error} {payload or ''}")
        else:
            print(f"PASS pyicloud: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
