-- The demo database: service areas of a highway network, as their operator would keep them.
-- It has the warts that real databases have: soft deletion, columns nobody fills, codes beside names, a view that
-- overlaps its tables, and facts that are missing for some days.

CREATE TABLE company (
    company_id   integer PRIMARY KEY,
    company_name text NOT NULL,
    region       text,
    founded_on   date,
    is_deleted   boolean NOT NULL DEFAULT false,
    updated_at   timestamptz NOT NULL
);
COMMENT ON TABLE company IS '管理公司：运营服务区的公司';
COMMENT ON COLUMN company.company_id IS '公司编号';
COMMENT ON COLUMN company.company_name IS '公司名称';
COMMENT ON COLUMN company.region IS '所属片区，部分公司未填写';
COMMENT ON COLUMN company.founded_on IS '成立日期';
COMMENT ON COLUMN company.is_deleted IS '是否已删除（逻辑删除）';
COMMENT ON COLUMN company.updated_at IS '更新时间';

CREATE TABLE service_area (
    service_area_id   integer PRIMARY KEY,
    service_area_name text NOT NULL,
    company_id        integer NOT NULL REFERENCES company (company_id),
    road_name         text NOT NULL,
    province          text NOT NULL,
    status            text NOT NULL,
    parking_spaces    integer,
    opened_on         date,
    is_deleted        boolean NOT NULL DEFAULT false,
    updated_at        timestamptz NOT NULL
);
COMMENT ON TABLE service_area IS '服务区：高速公路服务区基本信息';
COMMENT ON COLUMN service_area.service_area_id IS '服务区编号';
COMMENT ON COLUMN service_area.service_area_name IS '服务区名称';
COMMENT ON COLUMN service_area.company_id IS '所属管理公司编号';
COMMENT ON COLUMN service_area.road_name IS '所在高速公路';
COMMENT ON COLUMN service_area.province IS '所在省份';
COMMENT ON COLUMN service_area.status IS '营业状态：营业中、装修中、已关闭';
COMMENT ON COLUMN service_area.parking_spaces IS '停车位数量，部分未统计';
COMMENT ON COLUMN service_area.opened_on IS '开业日期';
COMMENT ON COLUMN service_area.is_deleted IS '是否已删除（逻辑删除）';
COMMENT ON COLUMN service_area.updated_at IS '更新时间';

CREATE TABLE shop (
    shop_id         integer PRIMARY KEY,
    shop_name       text NOT NULL,
    service_area_id integer NOT NULL REFERENCES service_area (service_area_id),
    category        text NOT NULL,
    brand           text,
    floor_area      numeric(8, 2),
    monthly_rent    numeric(12, 2),
    is_deleted      boolean NOT NULL DEFAULT false,
    updated_at      timestamptz NOT NULL
);
COMMENT ON TABLE shop IS '店铺（档口）：服务区内的商铺';
COMMENT ON COLUMN shop.shop_id IS '店铺编号';
COMMENT ON COLUMN shop.shop_name IS '店铺名称';
COMMENT ON COLUMN shop.service_area_id IS '所属服务区编号';
COMMENT ON COLUMN shop.category IS '经营类别：餐饮、便利店、加油站、小吃、汽车维修';
COMMENT ON COLUMN shop.brand IS '品牌，自营店铺为空';
COMMENT ON COLUMN shop.floor_area IS '经营面积（平方米）';
COMMENT ON COLUMN shop.monthly_rent IS '月租金（元）';
COMMENT ON COLUMN shop.is_deleted IS '是否已删除（逻辑删除）';
COMMENT ON COLUMN shop.updated_at IS '更新时间';

CREATE TABLE daily_revenue (
    revenue_date date NOT NULL,
    shop_id      integer NOT NULL REFERENCES shop (shop_id),
    payment_type text NOT NULL,
    amount       numeric(12, 2),
    order_count  integer NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (revenue_date, shop_id, payment_type)
);
COMMENT ON TABLE daily_revenue IS '营业收入日报：每店铺每日各支付方式的营业收入';
COMMENT ON COLUMN daily_revenue.revenue_date IS '营业日期';
COMMENT ON COLUMN daily_revenue.shop_id IS '店铺编号';
COMMENT ON COLUMN daily_revenue.payment_type IS '支付方式：微信、支付宝、现金、银行卡';
COMMENT ON COLUMN daily_revenue.amount IS '营业收入金额（元），未上报时为空';
COMMENT ON COLUMN daily_revenue.order_count IS '订单数';
COMMENT ON COLUMN daily_revenue.updated_at IS '更新时间';

CREATE TABLE daily_traffic (
    traffic_date    date NOT NULL,
    service_area_id integer NOT NULL REFERENCES service_area (service_area_id),
    vehicle_class   text NOT NULL,
    vehicle_count   integer,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (traffic_date, service_area_id, vehicle_class)
);
COMMENT ON TABLE daily_traffic IS '车流量日报：每服务区每日各车型的入区车辆数';
COMMENT ON COLUMN daily_traffic.traffic_date IS '统计日期';
COMMENT ON COLUMN daily_traffic.service_area_id IS '服务区编号';
COMMENT ON COLUMN daily_traffic.vehicle_class IS '车型：客车、货车、危化品车、新能源车';
COMMENT ON COLUMN daily_traffic.vehicle_count IS '车流量（辆次），设备故障时为空';
COMMENT ON COLUMN daily_traffic.updated_at IS '更新时间';

CREATE VIEW service_area_daily_revenue AS
SELECT r.revenue_date,
       s.service_area_id,
       sum(r.amount)      AS revenue,
       sum(r.order_count) AS order_count
FROM daily_revenue r
JOIN shop s ON s.shop_id = r.shop_id
GROUP BY r.revenue_date, s.service_area_id;
COMMENT ON VIEW service_area_daily_revenue IS '服务区营业收入日汇总视图';
COMMENT ON COLUMN service_area_daily_revenue.revenue_date IS '营业日期';
COMMENT ON COLUMN service_area_daily_revenue.service_area_id IS '服务区编号';
COMMENT ON COLUMN service_area_daily_revenue.revenue IS '营业收入合计（元）';
COMMENT ON COLUMN service_area_daily_revenue.order_count IS '订单数合计';
