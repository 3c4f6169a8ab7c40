-- The directory of people, as a domain role: its tenants' rows and no others.

-- name: put_contact
INSERT INTO platform.contact AS kept (tenant_id, user_id, active, first_name, locale, zone, email, phone)
VALUES (%(tenant)s, %(user)s, %(active)s, %(first_name)s, %(locale)s, %(zone)s, %(email)s, %(phone)s)
ON CONFLICT (tenant_id, user_id) DO UPDATE
SET active = excluded.active, first_name = excluded.first_name, locale = excluded.locale, zone = excluded.zone,
    email = excluded.email, phone = excluded.phone
WHERE (kept.active, kept.first_name, kept.locale, kept.zone, kept.email, kept.phone)
      IS DISTINCT FROM
      (excluded.active, excluded.first_name, excluded.locale, excluded.zone, excluded.email, excluded.phone)

-- name: set_phone
UPDATE platform.contact SET phone = %(phone)s WHERE tenant_id = %(tenant)s AND user_id = %(user)s

-- name: forget
DELETE FROM platform.contact WHERE tenant_id = %(tenant)s AND user_id = %(user)s

-- name: assign
INSERT INTO platform.assignment AS kept (tenant_id, product, subject_id, role, user_id)
VALUES (%(tenant)s, %(product)s, %(subject)s, %(role)s, %(user)s)
ON CONFLICT (tenant_id, product, subject_id, role) DO UPDATE
SET user_id = excluded.user_id
WHERE kept.user_id <> excluded.user_id

-- name: unassign
DELETE FROM platform.assignment
WHERE tenant_id = %(tenant)s AND product = %(product)s AND subject_id = %(subject)s AND role = %(role)s
